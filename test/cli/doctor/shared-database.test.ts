import { expect, test } from 'bun:test'
import { sharedDatabaseChecks } from '../../../cli/doctor/shared-database.ts'
import type { InspectedNode, SharedInspection } from '../../../src/host/host.ts'

type Open = Extract<SharedInspection, { state: 'open' }>

const node = (name: string, changes: Partial<InspectedNode> = {}): InspectedNode => ({
  name,
  version: '1.0.0',
  configuration: 'hash',
  settings: { signup: 'open' },
  startedAt: 0,
  seenAt: 0,
  isAlive: true,
  ...changes,
})

const healthy: Open = {
  state: 'open',
  facts: {
    version: 150_018,
    isInRecovery: false,
    isReadOnly: false,
    hasSchema: true,
    fsync: 'on',
    synchronousCommit: 'on',
    synchronousStandbys: 'any 1 (b, c)',
  },
  latencyMs: 0.42,
  masterKeys: 1,
  nodes: [node('a'), node('b')],
  openCircuits: [],
  guardAlerts: [],
  verifiedCountries: [],
  sendCounts: { sends: 0, untold: 0 },
  auditTrail: { isUnbroken: true, breaks: [], entries: 2, deleted: 0, provedSince: 0, heads: [] },
}

const info = { masterKeySource: 'OTPD_MASTER_KEY_FILE (/key)', nowMs: 60_000 }
const check = (changes: Partial<Open> = {}) => sharedDatabaseChecks({ ...healthy, ...changes }, info)
const problems = (changes: Partial<Open>) =>
  check(changes)
    .filter(({ status }) => status !== 'ok')
    .map(({ status, message }) => `${status}: ${message}`)

test('reports a healthy database', () => {
  expect(check().map(({ name, message }) => `${name}: ${message}`)).toEqual([
    'database: PostgreSQL 15.18, answers in 0.4 ms',
    'durability: a commit waits for a standby',
    'master key: from OTPD_MASTER_KEY_FILE (/key), matches the database',
    'schema: up to date',
    'nodes: a, b; one configuration',
    'audit trail: unbroken, 2 entries',
  ])
})

test('says why a database cannot be used', () => {
  const checks = sharedDatabaseChecks(
    { state: 'unusable', message: 'the database cannot be reached (ECONNREFUSED)', remedy: 'Start it.' },
    info,
  )
  expect(checks).toEqual([
    expect.objectContaining({
      status: 'fault',
      message: 'the database cannot be reached (ECONNREFUSED)',
      remedy: 'Start it.',
    }),
  ])
})

test.each<[string, Partial<Open>, string[]]>([
  [
    'no synchronous standby',
    { facts: { ...healthy.facts, synchronousStandbys: '' } },
    ['warning: no synchronous standby: a failover may lose the last commits'],
  ],
  [
    'commits that do not wait for the standby',
    { facts: { ...healthy.facts, synchronousCommit: 'local' } },
    ['warning: no synchronous standby: a failover may lose the last commits'],
  ],
  [
    'a server that may lose writes',
    { facts: { ...healthy.facts, fsync: 'off' } },
    ['fault: the server may lose acknowledged codes in a crash, and OTPD_DATABASE_UNSAFE accepts that'],
  ],
  [
    'two master keys',
    { masterKeys: 2 },
    ['warning: from OTPD_MASTER_KEY_FILE (/key); another one opens the database too'],
  ],
  ['no node', { nodes: [] }, ['warning: none serves this database']],
  [
    'a node that is gone',
    { nodes: [node('a'), node('b', { isAlive: false })] },
    ['warning: b did not stop, and was last seen 1 min ago'],
  ],
  [
    'other versions',
    { nodes: [node('a'), node('b', { version: '1.1.0' })] },
    ['warning: the versions differ: a (1.0.0), b (1.1.0)'],
  ],
  [
    'the settings that nodes of one version have, while they are upgraded',
    {
      nodes: [
        node('a'),
        node('b', { version: '1.1.0', configuration: 'new', settings: { prices: null } }),
        node('c', { version: '1.1.0', configuration: 'other', settings: { prices: 'EUR' } }),
      ],
    },
    [
      'warning: the versions differ: a (1.0.0), b (1.1.0), c (1.1.0)',
      'warning: the configuration of b differs from that of c: prices',
    ],
  ],
  [
    'other settings',
    { nodes: [node('a'), node('b', { configuration: 'other', settings: { signup: 'closed' } })] },
    ['warning: the configuration of a differs from that of b: signup'],
  ],
  [
    'other secrets',
    { nodes: [node('a'), node('b', { configuration: 'other' })] },
    ['warning: the configuration of a differs from that of b: secrets of providers'],
  ],
])('reports %s', (_, changes, expected) => {
  expect(problems(changes)).toEqual(expected)
})
