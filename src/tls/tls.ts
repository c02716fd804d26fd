/** Entry point of HTTPS, a part of its own in the executable: a server behind a proxy never loads it. */
export { openFiles } from './files.ts'
export { createKeeper } from './keeper.ts'
export { coversHost } from './pair.ts'
export { readSaved, tlsFolder } from './saved.ts'
