import { afterAll, describe, expect, test } from 'bun:test'
import { awsSns } from '../../../src/delivery/providers/aws-sns.ts'
import { computeAwsSignature } from '../../helpers/aws-signature.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider, sendTo, startProviderServer } from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const settings = {
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE0123456',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  baseUrl: server.url,
}
const provider = makeProvider(awsSns, settings)
const published = `<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>
  <MessageId>567910cd-659e-55d4-8ccb-5aaf14679dc0</MessageId></PublishResult>
  <ResponseMetadata><RequestId>d74b8436-ae13-5ab4-a9ff-ce54dfea72a0</RequestId></ResponseMetadata></PublishResponse>`
const errorBody = (code: string, message = 'words') =>
  `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>
  <Code>${code}</Code><Message>${message}</Message></Error><RequestId>r1</RequestId></ErrorResponse>`

describe('a message', () => {
  test('is published as AWS documents it, signed', async () => {
    server.setResponse(200, published)
    expect(await sendTo(provider)).toEqual({
      kind: 'accepted',
      messageId: '567910cd-659e-55d4-8ccb-5aaf14679dc0',
    })
    const call = server.takeCall()
    expect([call.method, call.path]).toEqual(['POST', '/'])
    expect(call.headers['content-type']).toBe('application/x-www-form-urlencoded; charset=utf-8')
    expect(call.headers['x-amz-date']).toBe('20261120T120000Z')
    expect(call.headers['authorization']).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0123456/20261120/eu-central-1/sns/aws4_request, ' +
        `SignedHeaders=content-type;host;x-amz-date, Signature=${computeAwsSignature(call, settings.secretAccessKey)}`,
    )
    expect(Object.fromEntries(new URLSearchParams(call.body))).toEqual({
      Action: 'Publish',
      Version: '2010-03-31',
      PhoneNumber: '+31612345678',
      Message: '482913 is your verification code. It is valid for 5 minutes.',
      'MessageAttributes.entry.1.Name': 'AWS.SNS.SMS.SMSType',
      'MessageAttributes.entry.1.Value.DataType': 'String',
      'MessageAttributes.entry.1.Value.StringValue': 'Transactional',
    })
  })

  test('contains the sender, the maximum price and the token of temporary credentials', async () => {
    const other = makeProvider(awsSns, {
      ...settings,
      senderId: 'Acme',
      maxPrice: '0.10',
      sessionToken: 'token-1',
    })
    server.setResponse(200, published)
    await sendTo(other)
    const call = server.takeCall()
    expect(call.headers['x-amz-security-token']).toBe('token-1')
    expect(call.headers['authorization']).toEndWith(computeAwsSignature(call, settings.secretAccessKey))
    expect(Object.fromEntries(new URLSearchParams(call.body))).toMatchObject({
      'MessageAttributes.entry.2.Name': 'AWS.SNS.SMS.SenderID',
      'MessageAttributes.entry.2.Value.StringValue': 'Acme',
      'MessageAttributes.entry.3.Name': 'AWS.SNS.SMS.MaxPrice',
      'MessageAttributes.entry.3.Value.DataType': 'Number',
      'MessageAttributes.entry.3.Value.StringValue': '0.10',
    })
  })
})

describe('an error', () => {
  test.each([
    [400, 'OptedOut', 'words', 'opted_out', 'number', true],
    [400, 'InvalidParameter', 'Invalid parameter: PhoneNumber', 'invalid_number', 'number', true],
    [400, 'InvalidParameter', 'Invalid parameter: Message too long', 'unknown', 'route', true],
    [403, 'AuthorizationError', 'words', 'auth_failed', 'account', true],
    [403, 'SignatureDoesNotMatch', 'words', 'auth_failed', 'account', true],
    [429, 'Throttled', 'words', 'throttled', 'route', false],
    [400, 'Throttling', 'words', 'throttled', 'route', false],
    [500, 'InternalError', 'words', 'provider_down', 'route', false],
    [400, 'SomethingNew', 'words', 'unknown', 'route', false],
  ])('HTTP %i with %s (%s) is %s of the %s', async (status, code, message, failureClass, at, permanent) => {
    server.setResponse(status, errorBody(code, message))
    expect(await sendTo(provider)).toEqual({
      kind: 'refused',
      failure: expect.objectContaining({ class: failureClass, at, permanent, providerCode: code }),
    })
    server.takeCall()
  })
})

describeHttpFaults((baseUrl) => makeProvider(awsSns, { ...settings, baseUrl }))

test('there are no callbacks', () => {
  expect(provider.readCallback).toBeUndefined()
})
