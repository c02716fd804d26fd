import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { logLists } from '../../src/store/sqlite/list-numbers.ts'
import { binaryPath, runBinary, startServer, type RunningServer } from '../helpers/binary.ts'
import { readEventStream } from '../helpers/event-stream.ts'

const developersCount = 10
/** The 200th reader is the command line, with a separate developer. */
const readersCount = 199
const sendsPerPhase = 40
/** Entries that exceed the buffers of both sockets, so that the server's writes block if a reader stops reading. */
const bigEntries = 15_000
const detail = 'x'.repeat(2_000)
const password = 'correct horse battery'
const logStart = `evt_${'0'.repeat(26)}`

const home = mkdtempSync(join(tmpdir(), 'otpd-stream-'))
const dataDir = join(home, 'data')
let server: RunningServer | undefined
const running = () => {
  if (!server) throw new Error('no server was started')
  return server
}

const start = async () => {
  // The command line uses one address, so later starts must listen on the same one.
  const address = server === undefined ? '127.0.0.1:0' : new URL(server.url).host
  // While a server drains, 199 readers reconnect 50 times a second: within the limit of a developer, the log could then not be
  // read for a minute.
  const env = { OTPD_SEND_PER_MINUTE: '0', OTPD_CONSOLE_PER_MINUTE: '0', OTPD_LISTEN: address }
  server = await startServer({ home, dataDir, env })
}
afterAll(() => rmSync(home, { recursive: true, force: true }))

type StreamUser = { id: string; token: string; headers: Record<string, string> }

async function callApi<T>(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<T> {
  const response = await fetch(running().url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  const apiResponse: { data: T; pagination: { nextCursor: string | null } } = JSON.parse(
    await response.text(),
  )
  return apiResponse.data
}

/** Creates a developer with a token, and an application whose messages are not sent. */
async function createStreamUser(index: number): Promise<StreamUser> {
  const email = `person-${index}@example.com`
  const args = ['admin', 'create', '--email', email, '--name', 'Person', '--password-stdin', '--json']
  const createResult = await runBinary(home, [...args, '--data-dir', dataDir], { input: password })
  const { id } = JSON.parse(createResult.stdout).data
  const response = await fetch(`${running().url}/v1/auth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'password', username: email, password }),
  })
  const { id_token: token } = JSON.parse(await response.text())
  const console = { authorization: `Bearer ${token}` }
  const project = await callApi<{ id: string }>('POST', '/v1/projects', console, { name: 'shop' })
  const body = { name: 'web', projectId: project.id, environment: 'test' }
  const app = await callApi<Record<string, string>>('POST', '/v1/applications', console, body)
  const headers = {
    'x-client-id': app['clientId'] ?? '',
    'x-client-secret': app['clientSecret'] ?? '',
    'x-api-key': app['apiKey'] ?? '',
  }
  return { id, token, headers }
}

let phones = 0
/** Sends codes. A send without a response, because the server is down, may or may not be in the log. */
const sendMany = (person: StreamUser, count = sendsPerPhase) =>
  Promise.all(
    Array.from({ length: count }, () =>
      callApi('POST', '/v1/otp/send', person.headers, { phone: `+1415${5_000_000 + phones++}` }).catch(
        () => {},
      ),
    ),
  )

async function readFullLog({ token }: StreamUser): Promise<string[]> {
  let ids: string[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const response = await fetch(`${running().url}/v1/logs?limit=200${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    if (!response.ok) throw new Error(`GET /v1/logs: ${response.status} ${await response.text()}`)
    const page: { data: Array<{ id: string }>; pagination: { nextCursor: string | null } } = JSON.parse(
      await response.text(),
    )
    ids = [...page.data.map(({ id }) => id), ...ids]
    cursor = page.pagination.nextCursor
  } while (cursor !== null)
  return ids
}

/** Follows the log, reconnects whenever the connection ends, and records the received ids. */
function follow({ token }: StreamUser) {
  let last = logStart
  const received = createReceivedIds()
  const abort = new AbortController()

  async function run() {
    while (!abort.signal.aborted) {
      const headers = { authorization: `Bearer ${token}`, 'last-event-id': last }
      const url = `${running().url}/v1/logs/stream`
      const response = await fetch(url, { headers, signal: abort.signal }).catch(() => null)
      if (response?.status === 200) await read(readEventStream(response.body))
      else await Bun.sleep(20)
    }
  }

  async function read(reading: ReturnType<typeof readEventStream>) {
    for (;;) {
      const message = await reading.next().catch(() => undefined)
      if (!message) return
      if (message.id !== undefined) last = message.id
      if (message.data !== undefined && message.event === undefined) received.add(last)
    }
  }

  const done = run()
  return {
    ...received,
    stop() {
      abort.abort()
      return done
    },
  }
}

/** Runs `otpd logs --tail`, which can be suspended. */
function tail({ token }: StreamUser) {
  const env = { HOME: home, OTPD_SERVER: running().url, OTPD_TOKEN: token, PATH: process.env.PATH ?? '' }
  const child = Bun.spawn([binaryPath, 'logs', '--tail', '--json'], {
    env,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const received = createReceivedIds()
  const done = (async () => {
    let text = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (text + chunk).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) received.add(JSON.parse(line).id)
    }
  })()
  return {
    ...received,
    freeze: () => child.kill('SIGSTOP'),
    thaw: () => child.kill('SIGCONT'),
    async end() {
      child.kill('SIGINT')
      await done
      return child.exited
    },
  }
}

/** Records the ids that a reader received, and waits for one. */
function createReceivedIds() {
  const ids: string[] = []
  let waiting: { id: string; resolve(): void } | undefined
  return {
    ids,
    add(id: string) {
      ids.push(id)
      if (waiting?.id === id) waiting.resolve()
    },
    waitForId: (id: string) =>
      ids.includes(id) ? Promise.resolve() : new Promise<void>((resolve) => (waiting = { id, resolve })),
  }
}

/** Writes many entries at once from another process. */
function writeBigEntries(developerId: string) {
  const database = new Database(join(dataDir, 'otpd.db'))
  database.run('PRAGMA busy_timeout = 5000')
  const insert = database.prepare(
    `insert into events (seq, type, developer_id, detail, at)
     values (?, 'otp.sent', (select number from short_ids where id = ?), ?, 0)`,
  )
  database
    .transaction(() => {
      const counter = database.query<{ value: number }, [number]>(
        "update counters set value = value + ? where name = 'event_seq' returning value",
      )
      const { value } = counter.get(bigEntries) ?? { value: 0 }
      const owner = database.query<{ number: number }, [string]>('select number from short_ids where id = ?')
      const ownerNumber = owner.get(developerId)?.number ?? 0
      const changes = []
      for (let number = 1; number <= bigEntries; number++) {
        const seq = value - bigEntries + number
        insert.run(seq, developerId, detail)
        changes.push([ownerNumber, seq, [logLists.live], []])
      }
      database.run('insert into list_changes (changes) values (?)', [JSON.stringify(changes)])
    })
    .immediate()
  database.close()
}

const residentMb = (pid: number) =>
  process.platform === 'linux'
    ? Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
    : 0

test('200 readers, one stalled, see every entry once through two restarts', async () => {
  await start()
  const people: StreamUser[] = []
  for (let index = 0; index <= developersCount; index++) people.push(await createStreamUser(index))
  const [stalledUser, ...otherUsers] = people
  if (!stalledUser) throw new Error('no user was created')
  const readers = Array.from({ length: readersCount }, (_, index) => {
    const person = otherUsers[index % otherUsers.length] ?? stalledUser
    return { person, ...follow(person) }
  })
  const stalledReader = tail(stalledUser)
  // The command starts with the last few entries, so the log may not have more before it follows.
  await sendMany(stalledUser, 1)
  await stalledReader.waitForId((await readFullLog(stalledUser)).at(-1) ?? '')
  await sendMany(stalledUser)
  await stalledReader.waitForId((await readFullLog(stalledUser)).at(-1) ?? '')
  await Promise.all(otherUsers.map((one) => sendMany(one)))

  const beforeMb = residentMb(running().pid)
  stalledReader.freeze()
  writeBigEntries(stalledUser.id)
  await Promise.all(people.map((one) => sendMany(one)))
  // The server polls every two seconds for entries written by other processes.
  await Bun.sleep(2_500)
  const stalledMb = residentMb(running().pid)

  // A graceful restart while codes are sent, and then a kill.
  const sending = Promise.all(people.map((one) => sendMany(one)))
  const stopStartedAt = performance.now()
  const exitCode = await running().stop('SIGTERM')
  const drainMs = Math.round(performance.now() - stopStartedAt)
  await sending
  await start()
  stalledReader.thaw()
  const sendingDuringKill = Promise.all(people.map((one) => sendMany(one)))
  await Bun.sleep(50)
  await running().stop('SIGKILL')
  await sendingDuringKill
  await start()
  await Promise.all(people.map((one) => sendMany(one)))

  const logs = new Map<StreamUser, string[]>()
  for (const person of people) logs.set(person, await readFullLog(person))
  const log = (person: StreamUser) => logs.get(person) ?? []
  const allReaders = [{ person: stalledUser, ...stalledReader }, ...readers]
  await Promise.all(allReaders.map(({ person, waitForId: hasSeen }) => hasSeen(log(person).at(-1) ?? '')))
  const [tailExitCode] = await Promise.all([stalledReader.end(), ...readers.map(({ stop }) => stop())])
  await running().stop()

  expect(allReaders).toHaveLength(200)
  for (const { person, ids } of allReaders) expect(ids).toEqual(log(person))
  const entries = allReaders.reduce((sum, { ids }) => sum + ids.length, 0)
  expect(entries).toBeGreaterThan(bigEntries + 199 * 3 * sendsPerPhase)
  expect([exitCode, tailExitCode]).toEqual([0, 130])
  // The server must cut the stalled connection sooner than the eight seconds that calls in progress may take.
  expect(drainMs).toBeLessThan(7_000)
  // The 30 MB for the stalled reader stay in the database, not in memory.
  expect(stalledMb - beforeMb).toBeLessThan(25)
}, 300_000)
