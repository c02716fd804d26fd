import { expect, test } from 'bun:test'
import { explainCode } from '../../src/shared/error-cause.ts'

test.each([
  ['ENOSPC', 'the disk is full, ENOSPC'],
  ['SQLITE_FULL', 'the disk is full, SQLITE_FULL'],
  ['SQLITE_IOERR_WRITE', 'the disk failed, SQLITE_IOERR_WRITE'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate not trusted, DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['CERT_HAS_EXPIRED', 'certificate expired, CERT_HAS_EXPIRED'],
  ['HPE_INVALID_CONSTANT', 'the answer is not valid HTTP, HPE_INVALID_CONSTANT'],
  ['EUNKNOWN', 'EUNKNOWN'],
  ['unknown error', 'unknown error'],
])('the code %s is explained as %s', (code, text) => {
  expect(explainCode(code)).toBe(text)
})
