import type { Command } from 'commander'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { findCommand } from '../../cli/help.ts'
import { createProgram } from '../../cli/program.ts'
import { flagForField } from '../../cli/terminal/field-flags.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import type { Operation } from '../helpers/openapi.ts'

// Walks the OpenAPI document and the tree of commands: every operation has a command, and every field that a caller may
// send has a flag or an argument there. A new route or field fails here until the command line has it.

/** Commands by operation. */
const commands: Record<string, string> = {
  'GET /v1/analytics/breakdown': 'analytics',
  'GET /v1/analytics/costs': 'analytics',
  'GET /v1/analytics/summary': 'analytics',
  'GET /v1/analytics/timeseries': 'analytics',
  'GET /v1/applications': 'app list',
  'POST /v1/applications': 'app create',
  'GET /v1/applications/{id}': 'app get',
  'PATCH /v1/applications/{id}': 'app update',
  'DELETE /v1/applications/{id}': 'app delete',
  'POST /v1/applications/{id}/rotate/{type}': 'app rotate',
  'GET /v1/applications/{id}/page': 'app page',
  'PATCH /v1/applications/{id}/page': 'app page',
  'GET /v1/applications/{id}/templates': 'template list',
  'GET /v1/applications/{id}/templates/{name}': 'template get',
  'PUT /v1/applications/{id}/templates/{name}': 'template set',
  'DELETE /v1/applications/{id}/templates/{name}': 'template delete',
  'GET /v1/applications/{id}/webhook-secret': 'app webhook-secret',
  'GET /v1/audit': 'audit',
  'GET /v1/auth/config': 'login',
  'GET /v1/auth/.well-known/openid-configuration': 'login',
  'GET /v1/auth/jwks.json': 'login',
  'POST /v1/auth/token': 'login',
  'POST /v1/auth/revoke': 'logout',
  'POST /v1/auth/password': 'profile password',
  'GET /v1/developer/me': 'profile get',
  'PATCH /v1/developer/me': 'profile update',
  'POST /v1/developer/me/totp': 'profile totp enable',
  'DELETE /v1/developer/me/totp': 'profile totp disable',
  'POST /v1/developer/me/totp/confirm': 'profile totp enable',
  // On the machine of the server; they say more there than developers may see.
  'GET /v1/guard': 'guard status',
  'GET /v1/guard/rules': 'guard rules',
  'POST /v1/guard/rules': 'guard allow',
  'DELETE /v1/guard/rules/{id}': 'guard remove',
  'GET /v1/providers': 'provider list',
  'GET /v1/routes': 'routes',
  'GET /v1/health': 'health',
  'GET /v1/health/ready': 'health',
  'GET /v1/inbox': 'inbox',
  'GET /v1/logs': 'logs',
  'GET /v1/logs/stream': 'logs',
  'POST /v1/otp/send': 'otp send',
  'POST /v1/otp/sessions': 'otp session create',
  'GET /v1/otp/sessions/{id}': 'otp session get',
  'POST /v1/otp/resend': 'otp resend',
  'POST /v1/otp/verify': 'otp verify',
  'POST /v1/otp/cancel': 'otp cancel',
  'POST /v1/otp/proofs': 'otp prove',
  'POST /v1/otp/deliver': 'otp deliver',
  'POST /v1/otp/deliver/{id}/outcome': 'otp outcome',
  'GET /v1/otp': 'otp list',
  'GET /v1/otp/{id}': 'otp get',
  'GET /v1/otp/{id}/events': 'otp get',
  'GET /v1/projects': 'project list',
  'POST /v1/projects': 'project create',
  'GET /v1/projects/{id}': 'project get',
  'PATCH /v1/projects/{id}': 'project update',
  'DELETE /v1/projects/{id}': 'project delete',
  'GET /v1/tokens': 'token list',
  'POST /v1/tokens': 'token create',
  'DELETE /v1/tokens/{id}': 'token revoke',
  'GET /v1/users': 'user list',
  'GET /v1/users/{phoneNumber}': 'user get',
  'DELETE /v1/users/{phoneNumber}': 'user erase',
  'POST /v1/users/{phoneNumber}/unlock': 'user unlock',
  'GET /v1/webhooks': 'webhook list',
  'POST /v1/webhooks': 'webhook create',
  'GET /v1/webhooks/{id}': 'webhook get',
  'PATCH /v1/webhooks/{id}': 'webhook update',
  'DELETE /v1/webhooks/{id}': 'webhook delete',
  'POST /v1/webhooks/{id}/test': 'webhook test',
  'GET /v1/webhooks/{id}/deliveries': 'webhook deliveries',
  'GET /v1/webhooks/{id}/deliveries/{deliveryId}': 'webhook deliveries',
  'POST /v1/webhooks/{id}/deliveries/{deliveryId}/redeliver': 'webhook redeliver',
  'POST /v1/webhooks/{id}/recover': 'webhook recover',
}

/** Fields without a flag of their own, and what takes their place. */
const elsewhere: Record<string, string> = {
  'DELETE /v1/users/{phoneNumber} erase': 'user erase always sends it, after a confirmation',
  'PATCH /v1/applications/{id} status': 'app enable, app disable',
  'PATCH /v1/applications/{id}/page enabled': 'app page --on, app page --off',
  'PATCH /v1/webhooks/{id} status': 'webhook enable, webhook disable',
  'POST /v1/guard/rules effect': 'guard allow, guard deny',
  'POST /v1/otp/proofs type': 'there is one',
  'POST /v1/guard/rules target': 'the server reads it from the value',
  'POST /v1/auth/password currentPassword': 'a prompt, or standard input: a password is no argument',
  'POST /v1/auth/password newPassword': 'as currentPassword',
  'DELETE /v1/developer/me/totp password': 'as currentPassword',
  'GET /v1/logs after': 'logs --tail',
  'GET /v1/logs cursor': '--limit and --since read all pages that they need',
  'GET /v1/logs order': 'logs are oldest first in a terminal',
  'GET /v1/logs/stream after': 'logs --tail follows what it has shown',
  'GET /v1/logs/stream last-event-id': 'a reconnection sends it',
  'GET /v1/otp/{id}/events limit': 'the timeline is shown as a whole',
  'GET /v1/otp/{id}/events cursor': 'the timeline is shown as a whole',
}

let api: ApiTester
const program = createProgram(processIo(), async () => {})

beforeAll(async () => void (api = await createApiTester()), 60_000)
afterAll(() => api.service.dispose())

const operationName = ({ method, path }: Operation) => `${method} ${path}`

const commandFor = (operation: Operation): Command =>
  findCommand(program, (commands[operationName(operation)] ?? '').split(' '))

/** Lists the names of what a caller may send, without ids in the path: these are arguments. */
const fieldsOf = ({ body, parameters = [] }: Operation) => [
  ...parameters.filter((parameter) => parameter.in !== 'path').map(({ name }) => name),
  ...Object.keys(body?.properties ?? {}),
]

test('every operation of the API has a command', () => {
  const missing = api.operations.map(operationName).filter((name) => !(name in commands))
  expect(missing).toEqual([])
  for (const path of Object.values(commands)) {
    const words: string[] = []
    for (let at = findCommand(program, path.split(' ')); at.parent !== null; at = at.parent)
      words.unshift(at.name())
    expect(words.join(' ')).toBe(path)
  }
})

test('every field of the API has a flag or an argument', () => {
  const missing = api.operations.flatMap((operation) =>
    fieldsOf(operation)
      .filter((field) => flagForField(commandFor(operation), field) === null)
      .map((field) => `${operationName(operation)} ${field}`),
  )
  expect(missing.filter((name) => !(name in elsewhere))).toEqual([])
})

test('no field that has a flag is excused from it', () => {
  const fields = new Set(
    api.operations.flatMap((operation) =>
      fieldsOf(operation).map((field) => `${operationName(operation)} ${field}`),
    ),
  )
  expect(Object.keys(elsewhere).filter((name) => !fields.has(name))).toEqual([])
})

test('every id in a path is an argument, or an option that must be given', () => {
  const missing = api.operations.filter((operation) => {
    const names = operation.path.match(/\{\w+\}/g) ?? []
    const { registeredArguments, options } = commandFor(operation)
    return registeredArguments.length + options.filter(({ mandatory }) => mandatory).length < names.length
  })
  expect(missing.map(operationName)).toEqual([])
})

test('every option and argument with a closed list names its values in the help', () => {
  const silent: string[] = []
  const visit = (command: Command) => {
    const described = [...command.options, ...command.registeredArguments]
    for (const { argChoices, description, ...rest } of described)
      if (argChoices?.some((choice) => !description.includes(choice)))
        silent.push(`${command.name()} ${'long' in rest ? rest.long : command.name()}`)
    command.commands.forEach(visit)
  }
  visit(program)
  expect(silent).toEqual([])
})
