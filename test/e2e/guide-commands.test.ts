import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  codeBlocks,
  commandLines,
  createReader,
  parseCommands,
  readDocument,
  type Reader,
} from '../helpers/guide-blocks.ts'

// The commands of every guide, taken from the page and typed as they are written there, or the reason why not.

type Page = {
  /** Makes what the page expects to exist. */
  before?: string[]
  /** Reasons why lines are not typed, by a part of the line or the heading above. */
  untyped?: Record<string, string>
}

const project = 'otpd project create shop -q'
const application = 'otpd app create web --project shop --env live --env-file .env.otpd -q'

/** A PNG image of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const pages: Record<string, Page> = {
  camara: {
    before: [project],
    untyped: { CAMARA_: 'shows what app env printed, and calls it: camara.test.ts' },
  },
  console: {},
  costs: {},
  guard: { before: [project, application] },
  payments: { before: [project, application.replace('--env live', '--env test')] },
  'ready-page': {
    before: [project, application, `echo ${pixel} | base64 -d > shop.png`],
    untyped: { ses_01k: 'an example of an id' },
  },
  supabase: {
    before: [project, application],
    untyped: { GOTRUE_: 'shows what app env printed', 'curl ': 'needs a provider: otp-deliver.test.ts' },
  },
  support: {
    before: ['otpd token create helpdesk --scope support --expires 30d > token', 'export HOME=$PWD'],
    untyped: { 'otpd console': 'needs a terminal: console.test.ts' },
  },
  testing: {
    before: [project],
    untyped: { '## In a test suite': 'starts a server of its own: guides.test.ts' },
  },
  troubleshooting: {},
  twilio: { before: [project] },
}

/** Pages whose commands need more than one server and one home, and the tests that cover them. */
const otherTests: Record<string, string> = {
  agents: 'belong to the program on the page: llms.test.ts',
  backup: 'need a bucket: backup-guide.test.ts',
  data: 'ask on a terminal, and need a restart in between: rotate-master-key.test.ts',
  'many-nodes': 'need PostgreSQL and several nodes: nodes-guide.test.ts',
  proofs: 'need the issuer of serve --dev: proofs.test.ts',
  quickstart: 'need values that each command prints: guides.test.ts',
  tls: 'need port 443 and a public name: tls.test.ts',
  upgrading: 'need a database of 0.1.0: upgrade-guide.test.ts',
}

const names = readdirSync(join(import.meta.dir, '../../src/docs')).flatMap((file) =>
  file.endsWith('.md') ? [file.slice(0, -3)] : [],
)
const guide = (name: string) => readDocument(`src/docs/${name}.md`)

test('every guide with commands is typed, or has a reason', async () => {
  const withCommands: string[] = []
  for (const name of names) if ((await parseCommands(guide(name))).count > 0) withCommands.push(name)
  expect(withCommands.toSorted()).toEqual([...Object.keys(pages), ...Object.keys(otherTests)].toSorted())
})

describe('the commands of', () => {
  let reader: Reader
  beforeAll(async () => {
    reader = await createReader()
    const login =
      'otpd login --setup-token-file $OTPD_DATA_DIR/setup-token --email ada@example.com --password-stdin'
    await reader.type(login, { input: 'correct horse battery' })
  })
  afterAll(() => reader.stop())

  test.each(Object.entries(pages))('%s work', async (name, { before = [], untyped = {} }) => {
    const text = guide(name)
    const linesBelow = (heading: string) => codeBlocks(text, 'sh', heading).flatMap(commandLines)
    const lines = linesBelow('')
    const untypedLines = Object.keys(untyped).map((part) =>
      part.startsWith('## ') ? linesBelow(part) : lines.filter((line) => line.includes(part)),
    )
    expect(untypedLines.filter(({ length }) => length === 0)).toEqual([])
    const typed = lines
      .filter((line) => !untypedLines.flat().includes(line))
      .map((line) => line.replace('https://otp.example.com', reader.server.url))
    expect(typed).not.toEqual([])
    mkdirSync(join(reader.folder, name))
    // One shell for the page, so that variables stay. The first line that fails ends it.
    await reader.type(['set -ex', `cd ${name}`, ...before, ...typed].join('\n'))
    await reader.type('for id in $(otpd app list -q); do otpd app delete $id --yes; done')
    await reader.type('for id in $(otpd project list -q); do otpd project delete $id --yes; done')
  })
})
