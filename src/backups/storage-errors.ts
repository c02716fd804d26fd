import { isRecord } from '../shared/json.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'

/** How messages name a bucket and its service. */
export type BucketLabels = { label: string; endpoint: string }

/** Errors of S3 services, by their own code. Any other is `STORAGE_FAILED`. */
const refusals: Record<string, { reason: string; remedy: string }> = {
  NoSuchBucket: {
    reason: 'BUCKET_MISSING',
    remedy: 'Create the bucket, or correct backup.to and backup.s3Endpoint.',
  },
  RequestTimeTooSkewed: {
    reason: 'CLOCK_WRONG',
    remedy: 'The clock of this machine is wrong: timedatectl set-ntp true',
  },
  ...Object.fromEntries(
    [
      'AccessDenied',
      'AllAccessDisabled',
      'AccountProblem',
      'ExpiredToken',
      'InvalidAccessKeyId',
      'InvalidToken',
      'SignatureDoesNotMatch',
    ].map((code) => [
      code,
      {
        reason: 'ACCESS_REFUSED',
        remedy:
          'Check the access key and its secret, and that it may list, read, write and delete objects with the prefix.',
      },
    ]),
  ),
}

/** Failures to reach the service, in words: the client gives a code and no text. */
const unreachable: Record<string, string> = {
  ConnectionRefused: 'refuses connections',
  FailedToOpenSocket: 'cannot be reached',
  ConnectionClosed: 'closed the connection',
  ECONNRESET: 'closed the connection',
  ConnectionReset: 'closed the connection',
  UnableToConnect: 'cannot be reached',
  DNSResolveFailed: 'has no address that is known here',
  ENOTFOUND: 'has no address that is known here',
}

/**
 * Converts an error of the S3 client to one that says what to do. The word of the service is part of it, and no secret is:
 * services quote none.
 *
 * @param object label of the object that was read, if one was
 */
export function storageError(error: unknown, { label, endpoint }: BucketLabels, object?: string): unknown {
  if (error instanceof OperationRefused) return error
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : ''
  const text = error instanceof Error ? error.message : ''
  const refuse = (reason: string, message: string, remedy: string) =>
    new OperationRefused(reason, message, remedy, error)

  if (code === 'Timeout') {
    const seconds = isRecord(error) ? Math.round(Number(error['limitMs']) / 1000) : 0
    return refuse(
      'STORAGE_TIMEOUT',
      `the service at ${endpoint} did not answer in ${seconds} s`,
      'Check the address in backup.s3Endpoint, the network and the service.',
    )
  }
  if (code === 'NoSuchKey' && object !== undefined)
    return refuse('FILE_MISSING', `there is no ${object}`, 'List what is there: otpd backup list')
  const known = refusals[code]
  if (known) return refuse(known.reason, `the service refuses ${label}: ${word(code, text)}`, known.remedy)
  const failure = unreachable[code]
  if (failure !== undefined)
    return refuse(
      'STORAGE_UNREACHABLE',
      `the service at ${endpoint} ${failure} (${code})`,
      'Check the address in backup.s3Endpoint, the network and the service.',
    )
  const said = /^an unexpected error has occurred$/i.test(text) ? '' : text
  return refuse(
    'STORAGE_FAILED',
    code === '' || (code === 'UnknownError' && said === '')
      ? `the service at ${endpoint} failed without saying why`
      : `the service failed on ${label}: ${word(code, said)}`,
    'Try again; if it stays, ask the operator of the service.',
  )
}

/** The code of the service with its text: `NoSuchBucket (The specified bucket does not exist)`. */
const word = (code: string, text: string) => {
  const sentence = text.replace(/\.$/, '').slice(0, 200)
  return sentence === '' ? code : `${code} (${sentence})`
}
