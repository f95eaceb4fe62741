// The pages and panels that Paperclip shows.
export { MemoryPage } from "./page";
export { MemoryLink, MemoryOfIssue, MemoryWidget } from "./panels";
export { MemorySettings } from "./settings";
