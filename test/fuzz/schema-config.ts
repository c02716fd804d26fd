import type { SchemaFixture } from './schema-fixture.ts'

/** Known value that Schemathesis sometimes uses instead of a generated one. */
type KnownValue = {
  operations: string[]
  /** `path.id`, `body.appId`, … */
  location: string
  values: string[]
  probability: number
}

/** Builds the configuration of Schemathesis: credentials, known values, and statuses that are correct here. */
export function schemathesisConfig(fixture: SchemaFixture): string {
  const lines = [
    'hooks = "schemathesis_hooks"',
    'request-timeout = 20.0',
    // Health checks measure how fast values are generated and how many are filtered, which depends on machine and seed.
    'suppress-health-check = ["all"]',
    'continue-on-failure = true',
    'warnings = false',
    '',
    // Valid for an hour. Logging in again would be refused after the wrong passwords that the run has tried.
    '[auth.openapi.console]',
    `bearer = ${JSON.stringify(fixture.token)}`,
    ...Object.entries(fixture.credentials).flatMap(([scheme, value]) => [
      `[auth.openapi.${scheme}]`,
      `api_key = ${JSON.stringify(value)}`,
    ]),
    '',
    // No string may contain NUL, which the schemas do not state for each.
    '[generation]',
    'allow-x00 = false',
    '',
    // A stream does not end and may be silent, so each call takes this long. The first bytes must arrive within it.
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
  // A cursor that was never issued.
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

/** Refusals of calls that match their schema, for reasons that a schema cannot express. */
const allowedRefusals: [operations: string[], statuses: string[]][] = [
  // An impossible phone number.
  [
    ['sendOtp', 'deliverCode'],
    ['400', '422'],
  ],
  // A wrong code, a closed request, a request that was just sent.
  [
    ['verifyOtp', 'cancelOtp'],
    ['400', '410'],
  ],
  [['resendOtp'], ['400', '410', '422', '429']],
  // A log position that was never issued; too many calls.
  [
    ['streamLogs', 'testWebhook', 'redeliverWebhook'],
    ['400', '429'],
  ],
  // A forbidden webhook URL; an idempotency key that was already used.
  [
    ['createWebhook', 'updateWebhook', 'recoverWebhook'],
    ['400', '422'],
  ],
  [['createProject', 'createApplication'], ['422']],
  // An expiry in the past, or an idempotency key that was already used.
  [['createApiToken'], ['400', '422']],
  // A token that proves nothing; an origin that the application does not allow, or no tag of a language.
  [
    ['proveOtp', 'createSession'],
    ['400', '422'],
  ],
  // A value that is none of its target, or an expiry in the past.
  [['createGuardRule'], ['400']],
  // A text without its code, a name of other characters, one template too many.
  [['putTemplate'], ['400', '409']],
  // A wrong password, an unknown token.
  [
    ['requestTokens', 'revokeToken', 'changePassword', 'confirmTotp', 'disableTotp'],
    ['400', '409', '429'],
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
    // If a schema has a pattern, Schemathesis does not generate the longest allowed string.
    body('name', ['createProject', 'updateProject', 'createApplication', 'updateApplication'], longNames),
    body('projectId', ['createApplication'], persistent.projectIds),
    body('appId', ['createWebhook'], persistent.appIds),
    body('requestId', ['resendOtp', 'verifyOtp', 'cancelOtp'], requestIds),
    body('code', ['verifyOtp'], ['424242']),
    body('phone', ['sendOtp', 'deliverCode'], phones),
  ]
}
