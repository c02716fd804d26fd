import { startCarrierServer } from './carrier-server.ts'

/**
 * AWS End User Messaging Notify by its API model: `pinpoint-sms-voice-v2` 2022-03-31, as in botocore 1.44.8. The pages of the user
 * guide on Notify say that a template or a default template is required, and that digits of calls are separated.
 *
 * @param certificate that of the SNS topic which reports events, in PEM
 */
export function startAwsNotify(certificate = '') {
  const feedback = new Map<string, string>()
  const configuration = {
    NotifyConfigurationArn: 'arn:aws:sms-voice:eu-central-1:123456789012:notify-configuration/nc-1',
    NotifyConfigurationId: 'nc-1',
    DisplayName: 'Acme',
    UseCase: 'CODE_VERIFICATION',
    EnabledCountries: ['DE', 'NL'],
    EnabledChannels: ['SMS', 'VOICE'],
    Tier: 'BASIC',
    Status: 'ACTIVE',
  }
  const exception = (type: string, fields: object = {}) =>
    Response.json({ __type: type, Message: 'no', ...fields }, { status: 400 })

  const server = startCarrierServer(({ path, headers, body }, mode, messages) => {
    if (path.endsWith('.pem')) return new Response(certificate)
    const operation = (headers['x-amz-target'] ?? '').replace('PinpointSMSVoiceV2.', '')
    const input: {
      NotifyConfigurationId?: string
      NotifyConfigurationIds?: string[]
      DestinationPhoneNumber?: string
      TemplateId?: string
      TemplateVariables?: { code?: string }
      MessageId?: string
      MessageFeedbackStatus?: string
    } = JSON.parse(body)
    if (mode === 'unauthorized') return exception('UnrecognizedClientException')
    if (operation === 'DescribeNotifyConfigurations') {
      const isKnown = input.NotifyConfigurationIds?.includes('nc-1')
      return isKnown
        ? Response.json({ NotifyConfigurations: [configuration] })
        : exception('ResourceNotFoundException', { ResourceType: 'notify-configuration' })
    }
    if (operation === 'PutMessageFeedback') {
      const { MessageId = '', MessageFeedbackStatus = '' } = input
      if (!messages.some(({ messageId }) => messageId === MessageId))
        return exception('ResourceNotFoundException', { ResourceType: 'message' })
      feedback.set(MessageId, MessageFeedbackStatus)
      return Response.json({ MessageId, MessageFeedbackStatus })
    }
    if (!/^SendNotify(Text|Voice)Message$/.test(operation)) return exception('UnknownOperationException')
    if (mode === 'throttle')
      return exception('ServiceQuotaExceededException', { Reason: 'DAILY_NOTIFY_TIER_MESSAGE_LIMIT' })
    if (mode === 'refuse') return exception('ValidationException', { Reason: 'COUNTRY_NOT_ENABLED' })
    const { code } = input.TemplateVariables ?? {}
    if (input.TemplateId === undefined || code === undefined)
      return exception('ValidationException', { Reason: 'MISSING_PARAMETER' })
    const messageId = crypto.randomUUID()
    messages.push({
      to: input.DestinationPhoneNumber ?? '',
      code: code.replaceAll('. ', ''),
      channel: operation === 'SendNotifyVoiceMessage' ? 'voice' : 'sms',
      messageId,
    })
    return Response.json({
      MessageId: messageId,
      TemplateId: input.TemplateId,
      ResolvedMessageBody: `Your code is ${code}.`,
    })
  })
  return { ...server, feedback, configuration }
}
