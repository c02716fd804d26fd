import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeLastBackup } from '../../src/backups/last-backup.ts'
import { alertKinds } from '../../src/domain/model/alert.ts'
import { makeCertificate } from '../helpers/webhook-receiver.ts'
import type { SpawnedProcess } from '../../src/world/world.ts'
import type { PeerRequest, PeerResponse } from './network.ts'
import { createSimulatedProvider, type SentMessage } from './peers.ts'
import { receiverHost } from './shop.ts'
import { openSimulation, type Simulation } from './simulation.ts'

/** Later than now, so that certificates that are made now are valid. */
const startAt = Date.UTC(2030, 0, 7)
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const untilHour = 28

/** Expected messages: one beginning and one end of each kind, and a reminder of the disk. The only node is not lost. */
const expected = [
  ...alertKinds.filter((kind) => kind !== 'node').flatMap((kind) => [`firing ${kind}`, `resolved ${kind}`]),
  'reminder disk',
].toSorted()

export type AlertDay = {
  /** Messages to the operator, without repetitions: `firing disk`. */
  told: string[]
  restarts: number
  simulatedMs: number
  /** Missing or second messages, and rules that were broken. */
  faults: string[]
}

type Post = { id: string; text: string; isTaken: boolean }

/**
 * Simulates 28 hours of the whole server with every fault that one node can have, each for hours, and a restart every 95
 * minutes: a kill, a power cut, or a stop. The full disk lasts longer than a day. The operator's receiver fails for two
 * hours.
 */
export async function simulateAlertDay(onTrace?: (line: string) => void): Promise<AlertDay> {
  const files = mkdtempSync(join(tmpdir(), 'otpd-alert-day-'))
  const certificates = {
    right: makeCertificate('otpd.sim', 9_000),
    wrong: makeCertificate('other.sim', 9_000),
  }
  const [certFile, keyFile] = [join(files, 'cert.pem'), join(files, 'key.pem')]
  const serve = ({ cert, key }: { cert: string; key: string }) => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key, { mode: 0o600 })
  }
  serve(certificates.right)
  const state = { freeBytes: 50e9, isBackupBroken: false, isOperatorDown: false }
  const simulation = await openSimulation(
    { seed: 29, steps: [], untilMs: 0 },
    {
      startAt,
      ...(onTrace && { onTrace }),
      configure: (config) => ({
        ...config,
        alerts: [
          {
            name: 'operator',
            kind: 'webhook',
            min: 'warning',
            values: { url: 'https://operator.sim/alerts' },
          },
        ],
        backup: { ...config.backup, everyMs: hourMs },
        tls: { certificate: { kind: 'files', certFile, keyFile }, httpListen: null, hstsSeconds: 0 },
      }),
      // A week in which most codes to Great Britain were verified.
      fillDatabase: (connection) => {
        const add = connection.prepare(
          `insert into breakdown_counts (day, developer_id, app_id, country, channel, provider, sent, verified)
           values (?, 1, 1, 'GB', 'sms', 'main', 100, 90)`,
        )
        for (let day = 1; day <= 7; day++) add.run(Math.floor(startAt / dayMs) - day)
      },
      machine: {
        freeBytes: () => state.freeBytes,
        spawn: (command) => backUp(command, state.isBackupBroken),
      },
    },
  )
  try {
    const posts = receiveAlerts(simulation, state)
    const callers = createCallers(simulation)
    const at = (hour: number, change: () => unknown) => void simulation.scheduler.after(hour * hourMs, change)
    scheduleFaults(simulation, callers, { at, state, serve, certificates })
    const causes = ['kill', 'power-cut', 'stop'] as const
    for (let round = 0; (round + 1) * 95 * minuteMs < untilHour * hourMs; round++)
      at(((round + 1) * 95) / 60, () => void simulation.restart(causes[round % 3] ?? 'kill'))

    const end = simulation.scheduler.now() + untilHour * hourMs
    await simulation.scheduler.runUntil(end)
    const taken = posts.filter(({ isTaken }) => isTaken)
    const told = [...new Map(taken.map(({ id, text }) => [id, text])).values()]
    return {
      told,
      restarts: simulation.restarts(),
      simulatedMs: untilHour * hourMs,
      faults: [
        ...(told.toSorted().join() === expected.join() ? [] : [`told: ${told.join(', ')}`]),
        ...simulation.violations.map(({ rule, detail }) => `${rule}: ${detail}`),
      ],
    }
  } finally {
    simulation.close()
    rmSync(files, { recursive: true })
  }

  /** Plays `otpd backup`, which takes a second. */
  function backUp(command: readonly string[], isBroken: boolean): SpawnedProcess {
    const dataDir = command[command.indexOf('--data-dir') + 1] ?? ''
    const exited = new Promise<number>((resolve) => {
      simulation.scheduler.after(1_000, () => {
        if (!isBroken) writeLastBackup(dataDir, { file: 'a', at: simulation.scheduler.now(), bytes: 1 })
        resolve(isBroken ? 6 : 0)
      })
    })
    const output = { text: () => exited.then(() => '') }
    return { pid: 1, exited, kill() {}, stdout: output, stderr: output }
  }
}

/** Receives the alerts. */
function receiveAlerts(simulation: Simulation, state: { isOperatorDown: boolean }): Post[] {
  const posts: Post[] = []
  simulation.network.addPeer('operator.sim', ({ headers, body }: PeerRequest): PeerResponse => {
    const { type, data } = JSON.parse(body) as { type: string; data: { kind: string; subject: string } }
    const text = `${type.replace('alert.', '')} ${data.kind}`
    const isTaken = !state.isOperatorDown
    posts.push({ id: headers['webhook-id'] ?? '', text, isTaken })
    simulation.trace(`alert ${text} ${data.subject} ${isTaken ? 'taken' : 'refused'}`)
    return { status: isTaken ? 200 : 503 }
  })
  return posts
}

type Callers = ReturnType<typeof createCallers>

/** Creates the backend of the shop, whose users enter their codes or not. */
function createCallers(simulation: Simulation) {
  const { client, shop, network, scheduler } = simulation
  const messages = new Map<string, SentMessage>()
  const provider = (name: 'main' | 'spare') =>
    createSimulatedProvider(
      name,
      simulation.chance,
      (message) => void messages.set(message.requestId, message),
    )
  const peers = { main: provider('main').peer, spare: provider('spare').peer }
  const setProvider = (name: 'main' | 'spare', peer = peers[name]) =>
    network.addPeer(`${name}.sms.example`, peer)
  setProvider('main')
  setProvider('spare')
  const [app] = shop.apps
  if (!app) throw new Error('no application')

  async function verifyPhone(phone: string, isEntered: boolean) {
    const call = (path: string, body: object) =>
      client.call('POST', path, { headers: app?.headers ?? {}, body })
    const sent = await call('/v1/otp/send', { phone })
    const requestId = String(sent.answer?.data['requestId'] ?? '')
    // The message may arrive after the answer.
    await new Promise<void>((resolve) => void scheduler.after(5_000, resolve))
    const code = messages.get(requestId)?.code
    if (isEntered && code !== undefined) await call('/v1/otp/verify', { requestId, code })
  }

  return {
    setProvider,
    /** Lets new users verify their phones, one every few seconds. */
    verifyPhones(
      prefix: string,
      count: number,
      { everyMs, isEntered }: { everyMs: number; isEntered: boolean },
    ) {
      for (let index = 0; index < count; index++)
        scheduler.after(index * everyMs, () => void verifyPhone(`${prefix}${1_000 + index}`, isEntered))
    },
  }
}

/** Schedules each fault, and its end hours later. */
function scheduleFaults(
  simulation: Simulation,
  callers: Callers,
  needs: {
    at(hour: number, change: () => unknown): void
    state: { freeBytes: number; isBackupBroken: boolean; isOperatorDown: boolean }
    serve(certificate: { cert: string; key: string }): void
    certificates: Record<'right' | 'wrong', { cert: string; key: string }>
  },
): void {
  const { at, state, serve, certificates } = needs
  const { network, client, shop, receiver } = simulation
  // Users of every hour: a circuit closes when a message goes through.
  callers.verifyPhones('+1415555', untilHour * 12, { everyMs: 5 * minuteMs, isEntered: true })

  at(1, () => void (state.freeBytes = 500e6))
  at(26, () => void (state.freeBytes = 50e9))
  at(2, () => callers.setProvider('main', () => ({ status: 503 })))
  at(5, () => callers.setProvider('main'))
  at(4, () => serve(certificates.wrong))
  at(7, () => serve(certificates.right))
  // The next process starts with a right clock.
  at(6, () => simulation.node()?.stepClock(20_000))
  at(8, () => void (state.isOperatorDown = true))
  at(10, () => void (state.isOperatorDown = false))
  at(8, () => network.addPeer(receiverHost, () => ({ status: 410 })))
  at(9, () => network.addPeer(receiverHost, receiver.peer))
  at(11, () => {
    for (const id of shop.webhookIds)
      void client.call('PATCH', `/v1/webhooks/${id}`, { headers: shop.token, body: { status: 'enabled' } })
  })
  at(12, () => void (state.isBackupBroken = true))
  at(16, () => void (state.isBackupBroken = false))
  // These codes are not entered: the guard notices, and the conversion is halved.
  at(17, () => callers.verifyPhones('+44740010', 100, { everyMs: 5_000, isEntered: false }))
  at(19, () => callers.verifyPhones('+44740020', 400, { everyMs: 5_000, isEntered: true }))
}
