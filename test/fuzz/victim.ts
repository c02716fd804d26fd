import { startServer, type RunningServer } from '../helpers/binary.ts'
import { formatElapsed, type FuzzOptions, type FuzzPart } from './fuzz-part.ts'
import { seededRandom } from '../helpers/seeded-random.ts'

const password = 'correct horse battery'
const wrongPassword = 'wrong horse battery'
const victimEmail = 'victim@example.com'
/** The victim's usual place. */
const home = '192.0.2.1'
const attackers = 90
const successGoal = 0.99

type Outcome = { status: number; tookMs: number }
type LogIn = (email: string, secret: string, address: string) => Promise<Outcome>

export const victim: FuzzPart = {
  name: 'victim',
  title: 'logins of one developer while others guess, flood and spray, against the compiled binary',
  async run(options, print) {
    return [
      ...(await onServer((logIn) => floodEveryone(logIn, options, print))),
      ...(await onServer((logIn) => guessFromManyNetworks(logIn, print))),
      ...(await onServer((logIn) => sprayFromOneNetwork(logIn, print))),
    ]
  },
}

/** Runs an attack on a new server with accounts. It trusts its peer as a proxy, so that a call can choose its address. */
async function onServer(
  attack: (logIn: LogIn, server: RunningServer) => Promise<string[]>,
): Promise<string[]> {
  const server = await startServer({ env: { OTPD_TRUSTED_PROXIES: '127.0.0.1' } })
  try {
    for (const email of [victimEmail, 'colleague@example.com']) {
      const args = ['admin', 'create', '--email', email, '--password-stdin', '--data-dir', server.dataDir]
      const { exitCode, stderr } = await server.otpd(args, { input: password })
      if (exitCode !== 0) throw new Error(stderr)
    }
    return await attack(createLogIn(server.url), server)
  } finally {
    await server.stop()
  }
}

const createLogIn =
  (url: string): LogIn =>
  async (username, secret, address) => {
    const startedAt = performance.now()
    const response = await fetch(`${url}/v1/auth/token`, {
      method: 'POST',
      headers: { 'x-forwarded-for': address },
      body: new URLSearchParams({ grant_type: 'password', username, password: secret }),
    })
    await response.arrayBuffer()
    return { status: response.status, tookMs: performance.now() - startedAt }
  }

/**
 * 90 connections guess as fast as they are answered, from networks that change, half of them at the victim's account and
 * half at made-up addresses, while the victim logs in every second. The victim logs in once before, as owners have.
 */
async function floodEveryone(
  logIn: LogIn,
  { seconds, seed }: FuzzOptions,
  print: (line: string) => void,
): Promise<string[]> {
  const started = performance.now()
  const random = seededRandom(seed)
  const statuses = new Map<number, number>()
  await logIn(victimEmail, password, home)
  const attack = { isOver: false }

  const attackOn = async (isAtVictim: boolean) => {
    while (!attack.isOver) {
      const email = isAtVictim ? victimEmail : `made-up-${Math.floor(random() * 1e9)}@example.com`
      const { status } = await logIn(email, wrongPassword, randomAddress(random))
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const attacks = Array.from({ length: attackers }, (_, index) => attackOn(index % 2 === 0))
  const logins: Promise<Outcome>[] = []
  for (let second = 0; second < seconds; second += 1) {
    await Bun.sleep(1000)
    logins.push(logIn(victimEmail, password, home))
  }
  const outcomes = await Promise.all(logins)
  attack.isOver = true
  await Promise.all(attacks)

  const succeeded = outcomes.filter(({ status }) => status === 200).length
  const times = outcomes.map(({ tookMs }) => tookMs).toSorted((one, other) => one - other)
  const p50 = Math.round(times[Math.floor(times.length / 2)] ?? 0)
  const slowest = Math.round(times.at(-1) ?? 0)
  const attackText = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')
  print(
    `${attackers} connections for ${seconds} s: ${succeeded} of ${outcomes.length} logins of the victim succeed, ` +
      `p50 ${p50} ms, slowest ${slowest} ms; attackers got ${attackText}; ${formatElapsed(started)}`,
  )
  return succeeded >= outcomes.length * successGoal
    ? []
    : [`seed ${seed}: the victim logged in ${succeeded} of ${outcomes.length} times`]
}

/** Guesses five times from each of 60 networks at an account that was logged in to before. */
async function guessFromManyNetworks(logIn: LogIn, print: (line: string) => void): Promise<string[]> {
  await logIn(victimEmail, password, home)
  let compared = 0
  for (let network = 0; network < 60; network += 1)
    for (let guess = 0; guess < 5; guess += 1) {
      const { status } = await logIn(victimEmail, wrongPassword, `203.0.113.${network}`)
      if (status === 400) compared += 1
    }
  const owner = await logIn(victimEmail, password, home)
  print(`60 networks: ${compared} of 300 guesses at one account are compared; the owner gets ${owner.status}`)
  const findings: string[] = []
  if (compared > 100) findings.push(`${compared} guesses at one account were compared`)
  if (owner.status !== 200) findings.push(`the owner was refused with ${owner.status}`)
  return findings
}

/** Tries one password at 60 accounts from one network. The victim shares that network and logged in there before. */
async function sprayFromOneNetwork(logIn: LogIn, print: (line: string) => void): Promise<string[]> {
  const office = '198.51.100.7'
  await logIn(victimEmail, password, office)
  let compared = 0
  for (let account = 0; account < 60; account += 1) {
    const { status } = await logIn(`person-${account}@example.com`, wrongPassword, office)
    if (status === 400) compared += 1
  }
  const owner = await logIn(victimEmail, password, office)
  const newcomer = await logIn('colleague@example.com', password, office)
  print(
    `one network: ${compared} of 60 sprayed accounts are compared; an owner who logged in there before gets ` +
      `${owner.status}, another account ${newcomer.status}`,
  )
  const findings: string[] = []
  if (compared > 20) findings.push(`${compared} accounts were sprayed from one network`)
  if (owner.status !== 200) findings.push(`the owner was refused with ${owner.status}`)
  if (newcomer.status !== 429) findings.push(`a sprayed account answered ${newcomer.status}`)
  return findings
}

/** One of 16 million addresses, so that the limits of single networks do not end the attack. */
const randomAddress = (random: () => number) =>
  `10.${[random(), random(), random()].map((part) => Math.floor(part * 256)).join('.')}`
