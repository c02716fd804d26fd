/** Words for the codes of the system and of SQLite that an operator meets; the others are shown as they are. */
const causes: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
  EEXIST: 'it exists and is no folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EROFS: 'the disk is read-only',
  EIO: 'the disk failed',
  EMFILE: 'too many open files',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed',
  ETIMEDOUT: 'no answer in time',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  SQLITE_FULL: 'the disk is full',
  SQLITE_CANTOPEN: 'it cannot be opened',
  SQLITE_READONLY: 'it is read-only',
  SQLITE_IOERR: 'the disk failed',
  SQLITE_BUSY: 'another process is using it',
}

/** Explains the code of an error: `the disk is full, ENOSPC`. An unknown code is returned unchanged. */
export function explainCode(code: string): string {
  // Extended codes of SQLite begin with the one that they refine.
  const words = causes[code] ?? causes[code.split('_').slice(0, 2).join('_')]
  return words === undefined ? code : `${words}, ${code}`
}
