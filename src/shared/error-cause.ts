/** Words for the codes of the system, of TLS, of `fetch` and of SQLite that people meet. */
const causes: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'the name is too long',
  EEXIST: 'it exists and is no folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EROFS: 'the disk is read-only',
  EIO: 'the disk failed',
  EMFILE: 'too many open files',
  ECONNREFUSED: 'connection refused',
  ConnectionRefused: 'connection refused',
  ECONNRESET: 'connection closed',
  ConnectionClosed: 'connection closed',
  ETIMEDOUT: 'no answer in time',
  ABORTED: 'no answer in time',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  FailedToOpenSocket: 'no such host or no network',
  EPROTO: 'no TLS on this port',
  ERR_SSL_WRONG_VERSION_NUMBER: 'no TLS on this port',
  CERT_HAS_EXPIRED: 'certificate expired',
  CERT_NOT_YET_VALID: 'certificate not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate for another name',
  SQLITE_FULL: 'the disk is full',
  SQLITE_CANTOPEN: 'it cannot be opened',
  SQLITE_READONLY: 'it is read-only',
  SQLITE_READONLY_DBMOVED: 'its file was deleted, moved or replaced',
  SQLITE_IOERR: 'the disk failed',
  SQLITE_BUSY: 'another process is using it',
}

/** Codes of a certificate that is refused, besides those that say more. */
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_/

/** Explains the code of an error in words; undefined for an unknown one. */
export const codeText = (code: string): string | undefined =>
  causes[code] ??
  // Extended codes of SQLite begin with the one that they refine.
  causes[code.split('_').slice(0, 2).join('_')] ??
  (certificateCodes.test(code) ? 'certificate not trusted' : undefined) ??
  // Codes of the parser of HTTP.
  (code.startsWith('HPE_') ? 'the answer is not valid HTTP' : undefined)

/** Explains the code of an error: `the disk is full, ENOSPC`. An unknown code is returned unchanged. */
export function explainCode(code: string): string {
  const text = codeText(code)
  return text === undefined ? code : `${text}, ${code}`
}
