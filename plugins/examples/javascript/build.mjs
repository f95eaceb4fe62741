// Makes the component: `node build.mjs OUTPUT`.

import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const { component } = await componentize({
  sourcePath: 'notes.js',
  witPath: '../../../wit',
  worldName: 'memory-provider',
  // These are not used, so they are not imported. The clock stays, because `new Date()` reads it.
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile(process.argv[2], component);
