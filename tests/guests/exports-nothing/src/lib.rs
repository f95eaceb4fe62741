//! `exports-nothing` is a component without any export. It must be refused at admission, with an
//! error that says that the provider's interface is missing.
