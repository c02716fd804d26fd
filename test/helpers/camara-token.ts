import { joinSecrets } from '../../src/shared/sids.ts'
import type { TestApplication, TestService } from './service.ts'

/** Asks the façade of CAMARA for a token. */
export async function requestToken(
  service: Pick<TestService, 'request'>,
  { clientId, clientSecret, apiKey }: Pick<TestApplication, 'clientId' | 'clientSecret' | 'apiKey'>,
): Promise<string> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: joinSecrets(clientSecret, apiKey),
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { text } = await service.request('POST', '/camara/token', { headers, body: form.toString() })
  return String(JSON.parse(text).access_token)
}
