import { createHash, createHmac } from 'node:crypto'
import type { ProviderCall } from './provider-server.ts'

/**
 * Computes AWS Signature Version 4 from its specification, independently of the library that signed the call.
 *
 * @returns the signature that the call should have
 */
export function computeAwsSignature(call: ProviderCall, secretAccessKey: string): string {
  const authorization = call.headers['authorization'] ?? ''
  const [, scope = '', names = ''] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\S+), SignedHeaders=(\S+), /.exec(authorization) ?? []
  const [date = '', region = '', service = ''] = scope.split('/')
  const headers = names.split(';').map((name) => `${name}:${call.headers[name]?.trim()}\n`)
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const canonical = [call.method, call.path, '', headers.join(''), names, hash(call.body)].join('\n')
  const text = ['AWS4-HMAC-SHA256', call.headers['x-amz-date'], scope, hash(canonical)].join('\n')
  const key = [date, region, service, 'aws4_request'].reduce(
    (previousKey: string | Buffer, part) => createHmac('sha256', previousKey).update(part).digest(),
    `AWS4${secretAccessKey}`,
  )
  return createHmac('sha256', key).update(text).digest('hex')
}
