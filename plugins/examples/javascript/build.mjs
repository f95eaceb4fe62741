// Makes a component: `node build.mjs SOURCE OUTPUT`.

import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const [source, output] = process.argv.slice(2);
// What a provider does not use is not imported. The clock stays, because `new Date()` reads it, and so does the timeout
// of a request.
const builds = {
  'notes.js': { worldName: 'memory-provider', disableFeatures: ['http', 'fetch-event'] },
  // `fetch` needs `http`; `fetch-event` would make it a server.
  'fetch.js': { worldName: 'memory-provider-http', disableFeatures: ['fetch-event'] },
};
const { component } = await componentize({ sourcePath: source, witPath: '../../../wit', ...builds[source] });
await writeFile(output, component);
