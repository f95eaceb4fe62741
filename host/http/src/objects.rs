//! JSON as the documents describe it. A type with named fields is an object: without this, `serde`
//! also takes an array of the fields' values in their order, which means something else as soon as
//! a field is added. A whole number is an integer however it is written: `3.0` is one to JSON
//! Schema, and some languages have no other numbers. Where a field is missing, its name is kept.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

/// The field that is missing, where that is why something could not be read.
pub(crate) type Missing = Cell<Option<&'static str>>;

/// Wraps everything that reading goes through: a deserializer, its visitors, and the parts that
/// they hand on.
pub(crate) struct Objects<'a, T>(pub(crate) T, pub(crate) &'a Missing);

macro_rules! whole {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Whole(visitor))
        })+
    };
}

macro_rules! forward {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Objects(visitor, self.1))
        })+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i128 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq
        deserialize_map deserialize_identifier deserialize_ignored_any
    }

    whole! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor, self.1))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Objects(visitor, self.1))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Objects(visitor, self.1))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Objects(visitor, self.1))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Objects(visitor, self.1))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Objects(visitor, self.1))
    }
}

/// Takes an integer, also one that is written with a fraction of zeros.
struct Whole<V>(V);

/// Up to here every whole number of a float is the one that was written.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

impl<'de, V: Visitor<'de>> Visitor<'de> for Whole<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        self.0.visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        self.0.visit_u64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if value.fract() != 0.0 || value.abs() >= MAX_EXACT {
            return self.0.visit_f64(value);
        }
        match value < 0.0 {
            true => self.0.visit_i64(value as i64),
            false => self.0.visit_u64(value as u64),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        self.0.visit_str(value)
    }
}

macro_rules! visit {
    ($($method:ident($value:ty))+) => {
        $(fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.0.$method(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_f32(f32) visit_f64(f64) visit_char(char)
        visit_str(&str) visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(inner, self.1))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(inner, self.1))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(inner, self.1))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(inner, self.1)).map_err(|error| match error {
            Said::Missing(field) => {
                self.1.set(Some(field));
                A::Error::missing_field(field)
            }
            Said::Other(error) => error,
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(inner, self.1))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(inner, self.1))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed, self.1))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<'_, A> {
    type Error = Said<A::Error>;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Self::Error> {
        self.0.next_key_seed(Objects(seed, self.1)).map_err(Said::Other)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, Self::Error> {
        self.0.next_value_seed(Objects(seed, self.1)).map_err(Said::Other)
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// The error of a type that reads an object: the field that is missing, of which other errors keep
/// only a message.
#[derive(Debug)]
pub(crate) enum Said<E> {
    Missing(&'static str),
    Other(E),
}

impl<E: fmt::Display> fmt::Display for Said<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "missing field `{field}`"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl<E: Error> std::error::Error for Said<E> {}

impl<E: Error> Error for Said<E> {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(E::custom(message))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::Other(E::invalid_type(found, wanted))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::Other(E::invalid_value(found, wanted))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}

impl<'de, 'a, A: EnumAccess<'de>> EnumAccess<'de> for Objects<'a, A> {
    type Error = A::Error;
    type Variant = Objects<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let missing = self.1;
        let read = self.0.variant_seed(Objects(seed, missing));
        read.map(|(value, variant)| (value, Objects(variant, missing)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed, self.1))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Objects(visitor, self.1))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(MapOf(Objects(visitor, self.1)))
    }
}

/// Reads an object for a visitor.
struct MapOf<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for MapOf<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        inner.deserialize_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use memhost_types::{CaptureRequest, NewEvent, QueryRequest, VersionChoice};
    use serde::de::DeserializeOwned;

    use crate::read_json;

    fn refused<T: DeserializeOwned>(text: &str) -> String {
        read_json::<T>(text.as_bytes()).err().unwrap().detail().to_owned()
    }

    #[test]
    fn a_list_of_values_is_no_object_at_any_depth() {
        assert!(
            refused::<QueryRequest>(r#"["default",{"companyId":"a"},"q",1,"answer",{}]"#)
                .contains("invalid type: sequence")
        );
        assert!(
            refused::<QueryRequest>(
                r#"{"scope":["a",null,null,null,null,null,null,null],"query":"q"}"#
            )
            .contains("invalid type: sequence")
        );
        let source = r#"{"scope":{"companyId":"a"},"source":{"kind":"run","companyId":"a"},
            "payload":["t"]}"#;
        assert!(refused::<CaptureRequest>(source).contains("invalid type: sequence"));
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let read = |top_k: &str| {
            let query = format!(r#"{{"scope":{{"companyId":"a"}},"query":"q","topK":{top_k}}}"#);
            read_json::<QueryRequest>(query.as_bytes()).map(|query| query.top_k)
        };
        for whole in ["3", "3.0", "3e0", "30e-1"] {
            assert_eq!(read(whole).unwrap(), Some(3), "{whole}");
        }
        assert_eq!(read("0.0").unwrap(), Some(0));
        for other in ["3.5", "-3.0", "1e300", "4294967296.0", "\"3\""] {
            let problem = read(other).unwrap_err();
            assert!(problem.detail().contains("expected u32"), "{other}: {}", problem.detail());
        }
    }

    #[test]
    fn what_is_an_object_is_read_as_before() {
        let query = r#"{"scope":{"companyId":"a"},"query":"q","topK":3,"metadataFilter":{"a":[1,
            {"b":null}]}}"#;
        let read = read_json::<QueryRequest>(query.as_bytes()).unwrap();
        assert_eq!(read, serde_json::from_str(query).unwrap());
        let event = r#"{"type":"session.started","projectId":"p","sessionId":"s","agentKind":"k"}"#;
        assert_eq!(
            read_json::<NewEvent>(event.as_bytes()).unwrap(),
            serde_json::from_str(event).unwrap()
        );
        assert_eq!(
            read_json::<VersionChoice>(br#"{"follow":"^1"}"#).unwrap(),
            serde_json::from_str(r#"{"follow":"^1"}"#).unwrap()
        );
        assert!(
            refused::<QueryRequest>(r#"{"scope":{"companyId":"a"},"query":7}"#)
                .contains("expected a string")
        );
    }
}
