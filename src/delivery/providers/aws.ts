import { AwsV4Signer } from 'aws4fetch'
import type { Clock } from '../../domain/model/clock.ts'
import type { HttpResult, ProviderHttp } from '../kit/http-client.ts'

/** Settings that both AWS provider kinds share. */
export const awsFields = {
  region: {
    description: 'the region',
    required: true,
    pattern: /^[a-z]{2}(-[a-z]+)+-\d$/,
    example: 'eu-central-1',
  },
  accessKeyId: {
    description: 'the access key id',
    required: true,
    pattern: /^\w{16,128}$/,
    example: 'AKIA0000000000000000',
  },
  secretAccessKey: { description: 'the secret access key', required: true, secret: true },
  sessionToken: { description: 'the session token of temporary credentials', secret: true },
  baseUrl: { description: 'the URL of the endpoint, if it is not the default of the region', url: 'base' },
} as const

export type AwsAccount = {
  region: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

/** Host name of a service's endpoint; the AWS partition in China has its own domain. */
export const awsHost = (service: string, region: string) =>
  `${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`

/** Sends a POST signed with Signature Version 4; the signing time is the clock's. */
export async function postToAws(
  account: AwsAccount,
  { http, clock }: { http: ProviderHttp; clock: Clock },
  request: { service: string; url: string; headers: Record<string, string>; body: string },
  signal: AbortSignal,
): Promise<HttpResult> {
  const { service, url, headers, body } = request
  const signer = new AwsV4Signer({
    method: 'POST',
    url,
    headers,
    body,
    service,
    region: account.region,
    accessKeyId: account.accessKeyId,
    secretAccessKey: account.secretAccessKey,
    ...(account.sessionToken !== undefined && { sessionToken: account.sessionToken }),
    datetime: new Date(clock.now()).toISOString().replaceAll(/[-:]|\.\d{3}/g, ''),
    // Signs `content-type` too, which the library skips by default.
    allHeaders: true,
  })
  const signed = await signer.sign()
  return http.request({ method: 'POST', url, headers: Object.fromEntries(signed.headers), body }, signal)
}
