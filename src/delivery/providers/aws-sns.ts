import { readAccountCheck } from '../kit/account-check.ts'
import { awsFields, awsHost, postToAws } from './aws.ts'
import {
  createFailure,
  findFailure,
  outcomeFromId,
  outcomeFromResult,
  outcomeFromStatus,
  throttledFailure,
  type CodeTable,
} from '../kit/failures.ts'
import { isSuccess, type HttpResponse } from '../kit/http-client.ts'
import { defineKind, type ProviderNeeds, type SettingValues } from '../kit/provider-kinds.ts'
import { refused, type Provider, type SendOutcome } from '../kit/provider.ts'

const fields = {
  ...awsFields,
  senderId: { description: 'the sender name', pattern: /^[\w-]{1,11}$/, example: 'Acme' },
  originationNumber: {
    description: 'the number to send from',
    pattern: /^\+\d{5,15}$/,
    example: '+15005550006',
  },
  maxPrice: {
    description: 'the maximum price of a message, in USD',
    pattern: /^\d{1,2}(\.\d{1,5})?$/,
    example: '0.10',
  },
  dltEntityId: { description: 'the DLT entity id, for India' },
  dltTemplateId: { description: 'the DLT template id, for India' },
} as const

/** Values of `Code` in an error. */
const codes: CodeTable = {
  OptedOut: 'opted_out',
  AuthorizationError: 'auth_failed',
  AuthorizationErrorException: 'auth_failed',
  AccessDenied: 'auth_failed',
  ExpiredToken: 'auth_failed',
  InvalidClientTokenId: 'auth_failed',
  SignatureDoesNotMatch: 'auth_failed',
  IncompleteSignature: 'auth_failed',
  MissingAuthenticationToken: 'auth_failed',
  UserError: ['unknown', { permanent: true }],
  ValidationException: ['unknown', { permanent: true }],
  ParameterValueInvalid: ['unknown', { permanent: true }],
  InternalError: 'provider_down',
  InternalFailure: 'provider_down',
  ServiceUnavailable: 'provider_down',
}

/**
 * AWS SNS, publishing to a phone number. It has no message lifetime, so a message can arrive after its code
 * has expired, and reports delivery only to CloudWatch. `aws-sms` supports both.
 */
export const awsSns = defineKind({
  kind: 'aws-sns',
  title: 'AWS SNS',
  channels: ['sms'],
  fields,
  create: createAwsSns,
})

function createAwsSns(settings: SettingValues<typeof fields>, needs: ProviderNeeds): Provider {
  const url = `${settings.baseUrl ?? `https://${awsHost('sns', settings.region)}`}/`
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
  const attributes = [
    { name: 'AWS.SNS.SMS.SMSType', type: 'String', value: 'Transactional' },
    { name: 'AWS.SNS.SMS.SenderID', type: 'String', value: settings.senderId },
    { name: 'AWS.SNS.SMS.MaxPrice', type: 'Number', value: settings.maxPrice },
    { name: 'AWS.MM.SMS.OriginationNumber', type: 'String', value: settings.originationNumber },
    { name: 'AWS.MM.SMS.EntityId', type: 'String', value: settings.dltEntityId },
    { name: 'AWS.MM.SMS.TemplateId', type: 'String', value: settings.dltTemplateId },
  ].flatMap(({ name, type, value }) => (value === undefined ? [] : { name, type, value }))

  return {
    async send(message, signal) {
      const form = new URLSearchParams({
        Action: 'Publish',
        Version: '2010-03-31',
        PhoneNumber: message.to,
        Message: message.text,
      })
      for (const [index, { name, type, value }] of attributes.entries()) {
        const entry = `MessageAttributes.entry.${index + 1}`
        form.set(`${entry}.Name`, name)
        form.set(`${entry}.Value.DataType`, type)
        form.set(`${entry}.Value.StringValue`, value)
      }
      const request = { service: 'sns', url, headers, body: form.toString() }
      return outcomeFromResult(await postToAws(settings, needs, request, signal), readResponse)
    },

    async checkAccount(signal) {
      const body = new URLSearchParams({ Action: 'GetSMSAttributes', Version: '2010-03-31' }).toString()
      return readAccountCheck(
        await postToAws(settings, needs, { service: 'sns', url, headers, body }, signal),
        'the account',
      )
    },
  }
}

function readResponse(response: HttpResponse): SendOutcome {
  if (isSuccess(response)) return outcomeFromId(response, xmlElementText(response.text, 'MessageId'))
  const code = xmlElementText(response.text, 'Code')
  if (
    response.status === 429 ||
    code === 'Throttled' ||
    code === 'Throttling' ||
    code === 'ThrottledException'
  ) {
    return refused(throttledFailure(response, code ?? null))
  }
  if (code === 'InvalidParameter' || code === 'InvalidParameterValue') {
    // Only the message text says which parameter is invalid.
    const isPhone = /phone ?number/i.test(xmlElementText(response.text, 'Message') ?? '')
    return refused(
      isPhone ? createFailure('invalid_number', code) : createFailure('unknown', code, { permanent: true }),
    )
  }
  const failure = findFailure(codes, code)
  return failure ? refused(failure) : outcomeFromStatus(response, code)
}

/** Text of the first element with this name. SNS responses are flat and have no markup inside text. */
const xmlElementText = (xml: string, name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml)?.[1]
