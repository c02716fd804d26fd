import { awsFields } from './aws.ts'
import { createEndUserMessaging, messagingFields, nameOrArnPattern } from './aws-end-user-messaging.ts'
import { accountFaulty, accountReady } from '../kit/account-check.ts'
import type { CodeTable } from '../kit/failures.ts'
import { listAt, textAt, valueAt } from '../kit/json.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import type { Provider } from '../kit/provider.ts'
import { readTemplateIds, templateIdsPattern } from '../kit/template-ids.ts'

const fields = {
  ...awsFields,
  notifyConfigurationId: {
    description: 'the id or ARN of the Notify configuration (otpd provider add lists what it allows)',
    required: true,
    pattern: nameOrArnPattern,
    example: 'nc-1234567890abcdef0',
  },
  templates: {
    description: 'the templates of AWS by language, the first one for all other languages',
    required: true,
    pattern: templateIdsPattern,
    example: '"en = notify-code-verification-english-001"',
  },
  voiceTemplates: {
    description: 'the templates for calls by language; calls need them',
    pattern: templateIdsPattern,
    example: '"en = notify-code-verification-english-001"',
  },
  ...messagingFields,
} as const

/** SMS Protect is mandatory for Notify: it filters artificially inflated traffic. */
const eventCodes: CodeTable = { TEXT_PROTECT_BLOCKED: 'blocked_by_carrier' }

/**
 * AWS End User Messaging Notify: senders, templates and fraud filter are AWS's, so that a new account can send at once. Built from
 * the API model 2022-03-31 in botocore 1.44.8, and the user guide's pages on Notify.
 */
export const awsNotify = defineKind({
  kind: 'aws-notify',
  title: 'AWS End User Messaging Notify',
  channels: ['sms', 'voice'],
  channelSettings: { voice: 'voiceTemplates' },
  textByProvider: ['sms', 'voice'],
  fields,
  create: createAwsNotify,
})

function createAwsNotify(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const messaging = createEndUserMessaging(settings, needs, eventCodes)
  const { voiceTemplates, notifyConfigurationId } = settings
  const templateFor = readTemplateIds(settings.templates)
  const voiceTemplateFor = voiceTemplates === undefined ? undefined : readTemplateIds(voiceTemplates)

  return {
    send(message, signal) {
      const { code, locale } = message
      const isCall = message.channel === 'voice'
      return messaging.send(
        isCall ? 'SendNotifyVoiceMessage' : 'SendNotifyTextMessage',
        message,
        {
          NotifyConfigurationId: notifyConfigurationId,
          TemplateId: (isCall ? voiceTemplateFor : templateFor)?.(locale),
          // Separated digits are read one by one (user guide, "Sending a voice message").
          TemplateVariables: { code: isCall ? [...code].join('. ') : code },
        },
        signal,
      )
    },

    checkAccount: (signal) =>
      messaging.checkAccount(
        {
          operation: 'DescribeNotifyConfigurations',
          fields: { NotifyConfigurationIds: [notifyConfigurationId] },
          resource: 'this Notify configuration',
        },
        readConfiguration,
        signal,
      ),

    ...messaging.reporting,
  }
}

function readConfiguration(body: unknown) {
  const configuration = valueAt(body, 'NotifyConfigurations', 0)
  const status = textAt(configuration, 'Status') ?? 'missing'
  if (status !== 'ACTIVE')
    return accountFaulty(
      `The Notify configuration is ${status}, so it sends nothing.`,
      textAt(configuration, 'RejectionReason') ?? 'See it in the console of AWS End User Messaging.',
    )
  const list = (name: string) => listAt(configuration, name).map(String).join(', ')
  const tier = textAt(configuration, 'Tier') ?? 'unknown'
  return accountReady(
    ['Name that people see', textAt(configuration, 'DisplayName') ?? '-'],
    ['Tier', tier === 'BASIC' ? 'BASIC: 200 messages a day, 1 a second' : tier],
    ['Channels', list('EnabledChannels') || '-'],
    ['Countries', list('EnabledCountries') || 'those of the tier'],
  )
}
