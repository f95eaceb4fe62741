// Makes the component: `node build.mjs OUTPUT`.

import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const { component } = await componentize({
  sourcePath: 'notes.js',
  witPath: '../../../wit',
  worldName: 'memory-provider',
  // Not asked for, so not imported. The clock stays: `new Date()` reads it.
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile(process.argv[2], component);
