import { awsFields } from './aws.ts'
import { createEndUserMessaging, messagingFields, nameOrArnPattern } from './aws-end-user-messaging.ts'
import { voiceFields } from './aws-voice.ts'
import { accountReady } from '../kit/account-check.ts'
import { listAt, textAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { omitNullish } from '../kit/message-fields.ts'
import type { OutgoingMessage, Provider } from '../kit/provider.ts'

/** As in the service's API model: a sender name has no spaces. */
const originationPattern = /^[\w:/+-]{1,256}$/

const fields = {
  ...awsFields,
  originationIdentity: {
    description: 'the number, sender name, pool or ARN to send from',
    pattern: originationPattern,
    example: 'ACME',
  },
  voiceOriginationIdentity: {
    description: 'the number, pool or ARN to call from, for voice',
    pattern: originationPattern,
    example: '+12065550152',
  },
  ...messagingFields,
  protectConfigurationId: {
    description: 'the protect configuration',
    pattern: nameOrArnPattern,
    example: 'protect-1234567890abcdef0',
  },
  maxPrice: {
    description: 'the maximum price per part, in USD',
    pattern: /^\d{1,2}\.\d{1,5}$/,
    example: '0.10',
  },
  dltEntityId: { description: 'the DLT entity id, for India' },
  dltTemplateId: { description: 'the DLT template id, for India' },
} as const

/**
 * AWS End User Messaging SMS and its voice messages (`PinpointSMSVoiceV2`). It has no callbacks per message:
 * receipts are events of a configuration set, delivered through an SNS topic.
 */
export const awsSms = defineKind({
  kind: 'aws-sms',
  title: 'AWS End User Messaging SMS',
  channels: ['sms', 'voice'],
  channelSettings: { voice: 'voiceOriginationIdentity' },
  fields,
  create: createAwsSms,
})

function createAwsSms(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const messaging = createEndUserMessaging(settings, needs)
  const dltParameters = omitNullish<string>({
    IN_ENTITY_ID: settings.dltEntityId,
    IN_TEMPLATE_ID: settings.dltTemplateId,
  })
  const textFields = ({ text }: OutgoingMessage) => ({
    OriginationIdentity: settings.originationIdentity,
    MessageBody: text,
    MessageType: 'TRANSACTIONAL',
    MaxPrice: settings.maxPrice,
    DestinationCountryParameters: Object.keys(dltParameters).length > 0 ? dltParameters : undefined,
  })
  const callFields = (message: OutgoingMessage) => ({
    OriginationIdentity: settings.voiceOriginationIdentity,
    ...voiceFields(message),
  })

  return {
    send(message, signal) {
      const isCall = message.channel === 'voice'
      return messaging.send(
        isCall ? 'SendVoiceMessage' : 'SendTextMessage',
        message,
        {
          ...(isCall ? callFields(message) : textFields(message)),
          ProtectConfigurationId: settings.protectConfigurationId,
        },
        signal,
      )
    },

    checkAccount: (signal) =>
      messaging.checkAccount(
        { operation: 'DescribeAccountAttributes', fields: {}, resource: 'the account' },
        (body) => {
          const attributes = listAt(body, 'AccountAttributes')
          const tier = attributes.find((one) => textAt(one, 'Name') === 'ACCOUNT_TIER')
          return accountReady(['Account tier', textAt(tier, 'Value') ?? 'unknown'])
        },
        signal,
      ),

    ...messaging.reporting,
  }
}
