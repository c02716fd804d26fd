import type { Database } from '../../src/store/engine/database.ts'
import { readOpenApi } from '../helpers/openapi.ts'
import { readOpened } from '../helpers/sealed-rows.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { createNormalizer } from './normalize.ts'
import { createPlan, type RecordedCall } from './plan.ts'
import { openWorld, type World } from './world.ts'

/** `bytesSeed` is that of the random bytes, from which ids and codes are made; a record does not depend on it. */
export type RecordOptions = { seed: number; calls: number; bytesSeed?: number }

/** Operations that a record leaves out: passwords and streams, whose time is not the clock's. */
const isLeftOut = ({ tags, path }: { tags: readonly string[]; path: string }) =>
  tags.includes('Login') || /password|totp|stream|\/test$|^\/v1\/tokens/.test(path)
/** Operations that would leave nothing to call. */
const isDestructive = ({ method, path }: { method: string; path: string }) =>
  (method === 'DELETE' && path !== '/v1/users/{phoneNumber}') ||
  /rotate/.test(path) ||
  (method === 'PATCH' && path.startsWith('/v1/applications'))

/**
 * Records what a build does: scripted calls of all routes and façades, each with its response and with the messages that
 * providers got, and at the end the rows of all tables. Two builds that behave alike give the same lines.
 *
 * @param write is called with each line, a JSON object
 * @throws what the database did not take: the machine is too busy, and the record would not repeat
 */
export async function record(
  database: Database,
  { seed, calls, bytesSeed = 1 }: RecordOptions,
  write: (line: string) => void,
) {
  const random = seededRandom(seed)
  const world = await openWorld(database, seededRandom(bytesSeed))
  const { service } = world
  const normalize = createNormalizer()
  const writeLine = (value: unknown) => write(normalize(JSON.stringify(value)))
  const { operations } = await readOpenApi(async (path) => (await service.request('GET', path)).text)
  const callable = operations.filter((one) => !isLeftOut(one) && !isDestructive(one))
  const plan = createPlan(world, callable, random)
  for (let number = 1; number <= calls; number++) {
    service.clock.advance(plan.pauseMs())
    const call = await plan.next()
    const { status, headers, text } = await service.request(call.method, call.path, call)
    // A receipt reopens a message in the background; retries become due.
    await service.services.messaging.sendDue()
    // Otherwise a timer writes them, which counts real time.
    await service.services.messaging.learning.share()
    const [cause = status === 503 ? text : undefined] = world.errors
    if (cause !== undefined)
      throw new Error(`call ${number}: this machine is too busy for a record`, { cause })
    writeLine({
      number,
      at: service.clock.now(),
      call: { ...call, sender: undefined, headers: namesOf(call.headers) },
      status,
      headers: Object.fromEntries(headers),
      response: parse(text),
    })
    learn(world, plan, call, text, writeLine)
  }
  // SQLite's rows of the guard are written some seconds later, or before a list of them.
  await service.store.write(async ({ guard }) => void (await guard.listKeys('', 1)))
  for (const table of Object.keys(database.tables) as Array<keyof Database['tables']>) {
    if (layoutTables.has(table)) continue
    // A database may return rows in any order; ids sort in the order of their creation.
    const rows = (await readOpened(database, table)).map((row) =>
      JSON.stringify({ table, row: observable(row) }),
    )
    for (const row of rows.toSorted()) write(normalize(row))
  }
  await world.dispose()
}

type Known = { requestId?: string; phone?: string; code?: string; id?: string }

/** Reads what later calls need from a response and from the messages, and writes the messages. */
function learn(
  world: World,
  plan: ReturnType<typeof createPlan>,
  call: RecordedCall,
  text: string,
  writeLine: (value: unknown) => void,
) {
  const body = parse(text)
  const { data, pagination, authenticationId } = (typeof body === 'object' && body !== null ? body : {}) as {
    data?: Known
    pagination?: { nextCursor: string | null }
    authenticationId?: string
  }
  const { sender } = call
  if (sender && data?.requestId !== undefined && data.phone !== undefined && data.code !== undefined)
    plan.remember({ ...sender, id: data.requestId, phone: data.phone, code: data.code })
  if (pagination) plan.rememberCursor(call.path, pagination.nextCursor)
  for (const { traceparent: _, ...message } of world.takeSent()) {
    writeLine({ message })
    const id = authenticationId ?? message.requestId
    if (sender) plan.remember({ ...sender, id, phone: message.to, code: message.code })
  }
}

/** Tables of the storage itself: another layout may keep the same data without them. */
const layoutTables: ReadonlySet<string> = new Set([
  'admissionBatches',
  'dataKeys',
  'backfills',
  'leases',
  'listChanges',
  'lists',
  'meta',
  'migrations',
  'phoneIndex',
  'rateAdmissions',
  'retentionMarks',
  'shortIds',
  'signingKeys',
])

/** Leaves out what follows from random bytes (salts, hashes), and what another layout numbers otherwise. */
const observable = (row: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(row).filter(([name, value]) => !freeColumns.test(name) && !isHash(value)))

const freeColumns = /salt|hash|context|subject|preview|sealed|witness|owner$|lease/i
/** 256 bits as base64url. */
const isHash = (value: unknown) => typeof value === 'string' && /^[\w-]{43}$/.test(value)

/** Credentials say nothing that the path and the names of the headers do not. */
const namesOf = (headers: Record<string, string> = {}) => Object.keys(headers).toSorted()

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
