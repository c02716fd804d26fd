import { awsNotify } from './aws-notify.ts'
import { awsSms } from './aws-sms.ts'
import { awsSns } from './aws-sns.ts'
import { bird } from './bird.ts'
import { genericHttp } from './generic-http.ts'
import { httpTemplate } from './http-template.ts'
import { infobip } from './infobip.ts'
import type { ProviderKind } from '../kit/provider-kinds.ts'
import { messagebird } from './messagebird.ts'
import { plivo } from './plivo.ts'
import { prelude } from './prelude.ts'
import { smpp } from './smpp.ts'
import { telegram } from './telegram.ts'
import { telnyx } from './telnyx.ts'
import { telnyxVerify } from './telnyx-verify.ts'
import { twilio } from './twilio.ts'
import { twilioVerify } from './twilio-verify.ts'
import { vonageVerify } from './vonage-verify.ts'
import { vonageMessages } from './vonage-messages.ts'
import { vonageSms } from './vonage-sms.ts'
import { whatsapp } from './whatsapp.ts'

/** Every kind of provider that a configuration can name. The inbox is not a kind: it needs no settings. */
export const providerKinds: readonly ProviderKind[] = [
  twilio,
  twilioVerify,
  vonageSms,
  vonageMessages,
  vonageVerify,
  awsNotify,
  awsSms,
  awsSns,
  infobip,
  plivo,
  telnyx,
  telnyxVerify,
  prelude,
  messagebird,
  bird,
  whatsapp,
  telegram,
  genericHttp,
  httpTemplate,
  smpp,
]

/** Lists the channels on which providers of a kind write the text themselves. */
export const channelsWithProviderText = (kindName: string) =>
  providerKinds.find(({ kind }) => kind === kindName)?.textByProvider ?? []
