import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Command } from 'commander'
import type { Dialog } from '../../cli/console/console-context.ts'
import { editAppDialog, toggleAppDialog } from '../../cli/console/screens/app-dialogs.ts'
import { pageDialog } from '../../cli/console/screens/page-dialog.ts'
import { editProjectDialog } from '../../cli/console/screens/project-dialogs.ts'
import { editDialog, toggleDialog } from '../../cli/console/screens/webhook-dialogs.ts'
import type { Application, WebhookEndpoint } from '../../cli/client/resources.ts'
import { createContext } from '../../cli/context.ts'
import { createProgram } from '../../cli/program.ts'
import { createOutput } from '../../cli/terminal/output.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { applicationFields } from '../../src/shared/application-fields.ts'
import { mapProperties, type FieldValues } from '../../src/shared/fields.ts'
import { readOpenApi } from '../helpers/openapi.ts'
import { createTestService } from '../helpers/service.ts'
import { createCliFixture, sampleProject } from './cli-fixture.ts'

// Every property that a PATCH body may have can be set by a command and in the console, or its absence has a reason.

const noProfileScreen = 'The console has no screen for the profile.'
const credentialHeaders = 'Header values are credentials and are write-only; set them by the API.'

type Resource = {
  operationId: string
  /** Commands that change the resource, without and with options. */
  commands: string[][]
  dialogs: (needs: Parameters<typeof editAppDialog>[0]) => Dialog[]
  missingOptions?: Record<string, string>
  missingFormFields?: Record<string, string>
}

const at = '2026-11-20T11:00:00.000Z'
const initialSettings: FieldValues<typeof applicationFields> = mapProperties(
  applicationFields,
  (field) => field.default,
)
const application: Application = {
  id: 'app_01arz3ndektsv4rrffq69g5fav',
  name: 'web',
  projectId: sampleProject().id,
  environment: 'test',
  status: 'active',
  clientId: 'ph_test_client_c',
  ...initialSettings,
  clientSecretPreview: 'ph_test_secret_1a2b****9f0e',
  apiKeyPreview: 'ph_test_api_1a2b****9f0e',
  createdAt: at,
  updatedAt: at,
}
const endpoint: WebhookEndpoint = {
  id: 'whk_01arz3ndektsv4rrffq69g5fav',
  appId: application.id,
  url: 'https://shop.example/hooks',
  events: ['*'],
  status: 'enabled',
  description: null,
  headers: {},
  disabledReason: null,
  failingSince: null,
  lastDeliveryAt: null,
  createdAt: at,
  updatedAt: at,
}

const page = {
  enabled: true,
  name: null,
  logo: 'data:image/png;base64,iVBORw0KGgo=',
  colour: null,
  returnOrigins: ['https://shop.example'],
}

const resources: Resource[] = [
  {
    operationId: 'updateApplicationPage',
    commands: [['app', 'page', application.id]],
    dialogs: (needs) => [pageDialog(needs, application, page)],
  },
  {
    operationId: 'updateApplication',
    commands: [
      ['app', 'update', application.id],
      ['app', 'enable', application.id],
      ['app', 'disable', application.id, '--yes'],
    ],
    dialogs: (needs) => [editAppDialog(needs, application), toggleAppDialog(needs, application)],
  },
  {
    operationId: 'updateProject',
    commands: [['project', 'update', sampleProject().id]],
    dialogs: (needs) => [editProjectDialog(needs, sampleProject())],
  },
  {
    operationId: 'updateWebhook',
    commands: [
      ['webhook', 'update', endpoint.id],
      ['webhook', 'enable', endpoint.id],
      ['webhook', 'disable', endpoint.id],
    ],
    dialogs: (needs) => [editDialog(needs, endpoint), toggleDialog(needs, endpoint)],
    missingOptions: { headers: credentialHeaders },
    missingFormFields: { headers: credentialHeaders },
  },
  {
    operationId: 'updateProfile',
    commands: [['profile', 'update']],
    dialogs: () => [],
    missingFormFields: { name: noProfileScreen, company: noProfileScreen },
  },
]

let cli: ReturnType<typeof createCliFixture>
let properties: Map<string, string[]>

beforeAll(async () => {
  const service = await createTestService()
  const { operations } = await readOpenApi(async (path) => (await service.request('GET', path)).text)
  await service.dispose()
  properties = new Map(
    operations
      .filter(({ method }) => method === 'PATCH')
      .map(({ operationId, body }) => [operationId, Object.keys(body?.properties ?? {}).toSorted()]),
  )
  cli = createCliFixture()
  cli.respond = () => Response.json({ data: {} })
})
beforeEach(() => void (cli.server.requests.length = 0))
afterAll(() => cli.end())

/** Names the properties of every PATCH body that was sent. */
const sentProperties = () => {
  const bodies = cli.server.requests.filter(({ method }) => method === 'PATCH').map(({ body }) => body)
  return bodies.flatMap((body) => Object.keys(JSON.parse(body)))
}

/** Lists how a command can be called to change something: with each of its options, or without options. */
function listCalls([noun = '', verb = '', ...args]: string[]) {
  const program = createProgram(processIo(), async () => {})
  const find = (parent: Command, name: string) => parent.commands.find((command) => command.name() === name)
  const parent = find(program, noun)
  const options = (parent && find(parent, verb)?.options) ?? []
  if (options.length === 0) return [[noun, verb, ...args]]
  return options.map(({ long, flags }) => {
    const value = flags.includes('<') ? [sampleValue(flags)] : []
    return [noun, verb, ...args, long ?? '', ...value]
  })
}

const sampleValue = (flags: string) =>
  flags.includes('<seconds>')
    ? '120'
    : flags.startsWith('--events')
      ? 'otp.verified'
      : flags.startsWith('--logo')
        ? ''
        : 'x'

/** Changes one field of a form at a time, and names the properties whose values follow. */
async function findFormProperties(dialog: Dialog) {
  const submit = async (values: Record<string, string>): Promise<Record<string, unknown>> => {
    if (!('submit' in dialog)) throw new Error(`A dialog of the kind ${dialog.kind} has no form.`)
    await dialog.submit(values)
    return JSON.parse(cli.server.requests.at(-1)?.body ?? '{}')
  }
  const fields = dialog.kind === 'form' ? dialog.fields : []
  const initial = Object.fromEntries(fields.map((field) => [field.name, field.initial ?? '']))
  const before = await submit(initial)
  if (fields.length === 0) return Object.keys(before)
  const found: string[] = []
  for (const { name } of fields) {
    const samples = name === 'logo' ? [''] : ['120', 'otp.verified', 'x']
    const value = samples.find((text) => isAccepted(dialog, name, text)) ?? ''
    const after = await submit({ ...initial, [name]: value })
    found.push(...Object.keys(after).filter((key) => !Bun.deepEquals(before[key], after[key])))
  }
  return found
}

const isAccepted = (dialog: Dialog, name: string, text: string) =>
  dialog.kind === 'form' &&
  (dialog.fields.find((field) => field.name === name)?.check?.(text) ?? null) === null

test('every PATCH operation is examined', () => {
  expect([...properties.keys()].toSorted()).toEqual(
    resources.map(({ operationId }) => operationId).toSorted(),
  )
})

describe.each(resources)('$operationId', (resource) => {
  const wanted = (missing: Record<string, string> = {}) =>
    properties.get(resource.operationId)?.filter((name) => !(name in missing)) ?? []

  test('every property can be set by a command', async () => {
    for (const call of resource.commands.flatMap(listCalls)) await cli.home.otpd(call)
    expect([...new Set(sentProperties())].toSorted()).toEqual(wanted(resource.missingOptions))
  })

  test('every property can be set in the console', async () => {
    const io = { ...processIo(), env: { OTPD_TOKEN: 'token', OTPD_SERVER: cli.server.url } }
    const { api } = createContext(io, {}, createOutput(io, {})).connect()
    const found: string[] = []
    for (const dialog of resource.dialogs({ api, toast: () => {} }))
      found.push(...(await findFormProperties(dialog)))
    expect([...new Set(found)].toSorted()).toEqual(wanted(resource.missingFormFields))
  })
})
