import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { bootImage, checkImage, writeImage, type ExpectedState } from './cut-image.ts'
import type { FaultFamily, Trial } from './family.ts'
import { createLedger, type Acknowledged } from './ledger.ts'
import { startLoad } from './load.ts'
import { createDisk, losses, readOperations, type Loss } from './replay.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { buildShim, createShim } from './disk-shim.ts'

const cutsPerRun = 500
const acknowledgedPerRun = 1_500
/** Numbers of connections. By group commit, few callers cause small transactions and many cause large ones. */
const connectionChoices = [1, 8, 32]
const bootEvery = 50
const applications = 4

type Run = { home: Home; log: string; acknowledged: Acknowledged[]; apps: TestApp[]; token: string }

export const cuts: FaultFamily = {
  name: 'cuts',
  description: 'power cuts, simulated by replaying the writes of the server up to a random call',
  counts: { cuts: { full: 1_000, short: 150 } },
  async run(trial) {
    const cutsWanted = trial.count('cuts')
    const library = buildShim(trial.folder)
    const figures = { cuts: 0, 'calls replayed': 0, acknowledged: 0, 'through the binary': 0, runs: 0 }
    const byLoss: Record<Loss, number> = { none: 0, some: 0, torn: 0 }
    const violations: string[] = []
    while (figures.cuts < cutsWanted && violations.length < 100) {
      const run = await recordRun(trial, library, figures.runs)
      const cutCount = Math.min(cutsPerRun, cutsWanted - figures.cuts)
      const { calls, boots, faults, cutsByLoss } = await cutRun(trial, run, cutCount)
      violations.push(...faults)
      figures.runs++
      figures.cuts += cutCount
      figures['calls replayed'] += calls
      figures.acknowledged += run.acknowledged.length
      figures['through the binary'] += boots
      for (const loss of losses) byLoss[loss] += cutsByLoss[loss]
      rmSync(run.home.home, { recursive: true })
      rmSync(run.log)
      if (cutsWanted > cutsPerRun)
        process.stdout.write(`   ${figures.cuts} cuts, broken: ${violations.length}\n`)
    }
    trial.report({
      scenario: `${figures.cuts} power cuts; kept of the unsynced writes: ${losses.map((loss) => `${loss} ${byLoss[loss]}`).join(', ')}`,
      guarantee: 'the database opens whole, with everything that was acknowledged before the cut',
      figures,
      violations,
    })
  },
}

/** Runs a server under load for a short time and records everything it writes. */
async function recordRun(trial: Trial, library: string, index: number): Promise<Run> {
  const home = makeHome(trial, `cuts-${index}`)
  const shim = createShim(library, trial.folder, home.dataDir)
  const acknowledged: Acknowledged[] = []
  const apps: TestApp[] = []
  const ledger = createLedger((one) => acknowledged.push(one))
  const server = await startServerAt(home, shim.env({ log: true }))
  let token = ''
  try {
    const client = await logIn(server.url)
    token = client.token
    for (let i = 0; i < applications; i++) apps.push(await client.createApplication())
    const connections = connectionChoices[index % connectionChoices.length] ?? 1
    const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections })
    const deadline = performance.now() + 60_000
    while (acknowledged.length < acknowledgedPerRun && performance.now() < deadline) await Bun.sleep(5)
    await load.stop()
  } finally {
    await server.stop('SIGKILL')
    shim.close()
  }
  if (ledger.violations.length > 0) throw new Error(ledger.violations[0])
  return { home, log: shim.log, acknowledged, apps, token }
}

async function cutRun(trial: Trial, run: Run, cutCount: number) {
  const { random } = trial
  const operations = readOperations(run.log)
  const byAnswer = new Map(run.acknowledged.map((one) => [one.answerId, one]))
  const cutPoints = Array.from({ length: cutCount }, () => 1 + Math.floor(random() * operations.length))
  cutPoints.sort((a, b) => a - b)
  const disk = createDisk(basename(run.home.dataDir))
  const expected: ExpectedState = new Map()
  const cutsByLoss: Record<Loss, number> = { none: 0, some: 0, torn: 0 }
  const faults: string[] = []
  let applied = 0
  let boots = 0
  for (const [number, cutPoint] of cutPoints.entries()) {
    for (; applied < cutPoint; applied++) {
      const operation = operations[applied]
      if (!operation) break
      disk.apply(operation)
      const answerId = operation.type === 'A' ? parseRequestId(operation.data) : undefined
      const acknowledged = answerId === undefined ? undefined : byAnswer.get(answerId)
      if (acknowledged) addAcknowledged(expected, acknowledged)
    }
    const loss = losses[Math.floor(random() * losses.length)] ?? 'none'
    cutsByLoss[loss]++
    const boot = number % bootEvery === bootEvery - 1
    const image = writeImage(run.home, disk.cut(loss, random))
    const imageFaults = boot ? await bootImage(image, expected, run) : checkImage(image, expected)
    rmSync(image.home, { recursive: true })
    faults.push(...imageFaults.map((fault) => `${loss}, cut at call ${cutPoint}: ${fault}`))
    if (boot) boots++
    if (faults.length > 100) break
  }
  return { calls: operations.length, boots, faults, cutsByLoss }
}

const parseRequestId = (data: Buffer) => /\r\nx-request-id: (\w+)/i.exec(data.toString('latin1'))?.[1]

function addAcknowledged(expected: ExpectedState, { kind, id, at }: Acknowledged) {
  const state = expected.get(id) ?? { attempts: 0, verifiedAt: undefined }
  expected.set(id, state)
  if (kind !== 'sent') state.attempts++
  state.verifiedAt ??= at
}
