import { joinSecrets, toSid } from '../../src/shared/sids.ts'
import type { TestApplication } from './service.ts'

/** Headers of a POST to the façade of Twilio Verify. */
export const twilioHeaders = ({
  id,
  clientSecret,
  apiKey,
}: Pick<TestApplication, 'id' | 'clientSecret' | 'apiKey'>) => ({
  authorization: `Basic ${btoa(`${toSid('AC', id)}:${joinSecrets(clientSecret, apiKey)}`)}`,
  'content-type': 'application/x-www-form-urlencoded',
})
