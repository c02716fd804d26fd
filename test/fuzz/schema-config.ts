import type { SchemaFixture } from './schema-fixture.ts'

/** A value that Schemathesis takes now and then where it would make one up. */
type KnownValue = {
  operations: string[]
  /** `path.id`, `body.appId`, … */
  location: string
  values: string[]
  probability: number
}

/** The configuration of Schemathesis: who calls, what it may know, and where its idea of a right answer is not ours. */
export function schemathesisConfig(fixture: SchemaFixture): string {
  const lines = [
    'hooks = "schemathesis_hooks"',
    'request-timeout = 20.0',
    // How fast values are made up, and how many are dropped, tells of the machine and of the seed.
    'suppress-health-check = ["all"]',
    'continue-on-failure = true',
    'warnings = false',
    '',
    // Good for an hour. Logging in again would be refused after all the wrong passwords that were tried.
    '[auth.openapi.console]',
    `bearer = ${JSON.stringify(fixture.token)}`,
    ...Object.entries(fixture.credentials).flatMap(([scheme, value]) => [
      `[auth.openapi.${scheme}]`,
      `api_key = ${JSON.stringify(value)}`,
    ]),
    '',
    // No text has a NUL in it, which the schemas do not say of each.
    '[generation]',
    'allow-x00 = false',
    '',
    // Without end, and silent where nothing happens: each takes that long. The first bytes have to come in it too.
    '[[operations]]',
    'include-operation-id = "streamLogs"',
    'request-timeout = 3.0',
    '',
    '[checks.negative_data_rejection]',
    'expected-statuses = ["4xx"]',
    '',
  ]
  for (const [index, { operations, location, values, probability }] of listKnownValues(fixture).entries()) {
    const name = `known${index}`
    lines.push(`[dictionaries.${name}]`, `values = ${JSON.stringify(values)}`)
    lines.push('[[operations]]', `include-operation-id = ${JSON.stringify(operations)}`)
    lines.push('[operations.parameters]')
    lines.push(`${JSON.stringify(location)} = { dictionary = "${name}", probability = ${probability} }`, '')
  }
  // A cursor that nobody was given.
  const cursors: (typeof allowedRefusals)[number] = [fixture.lists, ['400']]
  for (const [operations, statuses] of [...allowedRefusals, cursors]) {
    lines.push('[[operations]]', `include-operation-id = ${JSON.stringify(operations)}`)
    lines.push('[operations.checks.positive_data_acceptance]')
    lines.push(
      `expected-statuses = ${JSON.stringify([...'2xx 401 403 404 409'.split(' '), ...statuses])}`,
      '',
    )
  }
  return lines.join('\n')
}

/** Where a call that is right by its schema may be refused, for what a schema cannot say. */
const allowedRefusals: [operations: string[], statuses: string[]][] = [
  // A phone number that cannot be one.
  [['sendOtp'], ['400', '422']],
  // A wrong code, a request that is over, one that was sent a moment ago.
  [
    ['verifyOtp', 'cancelOtp'],
    ['400', '410'],
  ],
  [['resendOtp'], ['400', '410', '422', '429']],
  // A place in the log that nobody was given; what was tried too often.
  [
    ['streamLogs', 'testWebhook', 'redeliverWebhook'],
    ['400', '429'],
  ],
  // A URL that no webhook may have; a key that was used before.
  [
    ['createWebhook', 'updateWebhook', 'recoverWebhook'],
    ['400', '422'],
  ],
  [['createProject', 'createApplication'], ['422']],
  // A wrong password, an unknown token.
  [
    ['requestTokens', 'revokeToken', 'changePassword'],
    ['400', '429'],
  ],
]

const longNames = ['x'.repeat(80), '\u{1f600}'.repeat(40)]

function listKnownValues({
  persistent,
  deletable,
  ownRequestIds,
  requestIds,
  phones,
}: SchemaFixture): KnownValue[] {
  const commonProbability = 0.5
  const path = (operations: string[], values: string[]): KnownValue => ({
    operations,
    location: 'path.id',
    values,
    probability: commonProbability,
  })
  const body = (name: string, operations: string[], values: string[]): KnownValue => ({
    operations,
    location: `body.${name}`,
    values,
    probability: commonProbability,
  })
  return [
    path(['getProject', 'updateProject'], persistent.projectIds),
    path(['deleteProject'], deletable.projectIds),
    path(['getApplication', 'updateApplication', 'rotateCredential', 'getWebhookSecret'], persistent.appIds),
    path(['deleteApplication'], deletable.appIds),
    path(
      [
        'getWebhook',
        'updateWebhook',
        'testWebhook',
        'listWebhookDeliveries',
        'getWebhookDelivery',
        'redeliverWebhook',
        'recoverWebhook',
      ],
      persistent.webhookIds,
    ),
    path(['deleteWebhook'], deletable.webhookIds),
    path(['getOtpRequest'], [...ownRequestIds, ...requestIds.slice(0, 20)]),
    {
      operations: ['getWebhookDelivery', 'redeliverWebhook'],
      location: 'path.deliveryId',
      values: persistent.deliveryIds,
      probability: 0.9,
    },
    { operations: ['getUser'], location: 'path.phoneNumber', values: phones, probability: commonProbability },
    // Next to a pattern, Schemathesis leaves out the longest text that a schema takes.
    body('name', ['createProject', 'updateProject', 'createApplication', 'updateApplication'], longNames),
    body('projectId', ['createApplication'], persistent.projectIds),
    body('appId', ['createWebhook'], persistent.appIds),
    body('requestId', ['resendOtp', 'verifyOtp', 'cancelOtp'], requestIds),
    body('code', ['verifyOtp'], ['424242']),
    body('phone', ['sendOtp'], phones),
  ]
}
