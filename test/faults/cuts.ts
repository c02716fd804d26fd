import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { bootImage, checkImage, layImage, type Promised } from './cut-image.ts'
import type { Family, Trial } from './family.ts'
import { createLedger, type Acknowledged } from './ledger.ts'
import { startLoad } from './load.ts'
import { createDisk, losses, readOperations, type Loss } from './replay.ts'
import { makeHome, startAt, type Home } from './server.ts'
import { buildShim, createShim } from './shim.ts'

const cutsPerRun = 500
const acknowledgedPerRun = 1_500
/** Few callers make small commits, many make large ones. */
const connectionChoices = [1, 8, 32]
const bootEvery = 50
const applications = 4

type Run = { home: Home; log: string; acknowledged: Acknowledged[]; apps: TestApp[] }

export const cuts: Family = {
  name: 'cuts',
  about: 'power cuts, by replaying what the server wrote up to some moment',
  counts: { cuts: { full: 1_000, short: 150 } },
  async run(trial) {
    const wanted = trial.count('cuts')
    const library = buildShim(trial.folder)
    const figures = { cuts: 0, 'calls replayed': 0, acknowledged: 0, 'through the binary': 0, runs: 0 }
    const byLoss: Record<Loss, number> = { none: 0, some: 0, torn: 0 }
    const broken: string[] = []
    while (figures.cuts < wanted && broken.length < 100) {
      const run = await record(trial, library, figures.runs)
      const many = Math.min(cutsPerRun, wanted - figures.cuts)
      const { calls, boots, faults, cutsOf } = await cutRun(trial, run, many)
      broken.push(...faults)
      figures.runs++
      figures.cuts += many
      figures['calls replayed'] += calls
      figures.acknowledged += run.acknowledged.length
      figures['through the binary'] += boots
      for (const loss of losses) byLoss[loss] += cutsOf[loss]
      rmSync(run.home.home, { recursive: true })
      rmSync(run.log)
      if (wanted > cutsPerRun) process.stdout.write(`   ${figures.cuts} cuts, broken: ${broken.length}\n`)
    }
    trial.report({
      tried: `${figures.cuts} power cuts; of what was not synced ${losses.map((loss) => `${loss} ${byLoss[loss]}`).join(', ')}`,
      promised: 'the database opens whole, with everything that was acknowledged before the cut',
      figures,
      broken,
    })
  },
}

/** A short life of a server, with everything it wrote. */
async function record(trial: Trial, library: string, index: number): Promise<Run> {
  const home = makeHome(trial, `cuts-${index}`)
  const shim = createShim(library, trial.folder, home.dataDir)
  const acknowledged: Acknowledged[] = []
  const apps: TestApp[] = []
  const ledger = createLedger((one) => acknowledged.push(one))
  const server = await startAt(home, shim.env({ log: true }))
  try {
    const client = await logIn(server.url)
    for (let i = 0; i < applications; i++) apps.push(await client.createApplication())
    const connections = connectionChoices[index % connectionChoices.length] ?? 1
    const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections })
    const patience = performance.now() + 60_000
    while (acknowledged.length < acknowledgedPerRun && performance.now() < patience) await Bun.sleep(5)
    await load.stop()
  } finally {
    await server.stop('SIGKILL')
    shim.close()
  }
  if (ledger.broken.length > 0) throw new Error(ledger.broken[0])
  return { home, log: shim.log, acknowledged, apps }
}

async function cutRun(trial: Trial, run: Run, many: number) {
  const { random } = trial
  const operations = readOperations(run.log)
  const byAnswer = new Map(run.acknowledged.map((one) => [one.answerId, one]))
  const moments = Array.from({ length: many }, () => 1 + Math.floor(random() * operations.length))
  moments.sort((a, b) => a - b)
  const disk = createDisk(basename(run.home.dataDir))
  const promised: Promised = new Map()
  const cutsOf: Record<Loss, number> = { none: 0, some: 0, torn: 0 }
  const faults: string[] = []
  let passed = 0
  let boots = 0
  for (const [number, moment] of moments.entries()) {
    for (; passed < moment; passed++) {
      const operation = operations[passed]
      if (!operation) break
      disk.pass(operation)
      const answerId = operation.letter === 'A' ? answerIdOf(operation.data) : undefined
      const acknowledged = answerId === undefined ? undefined : byAnswer.get(answerId)
      if (acknowledged) keep(promised, acknowledged)
    }
    const loss = losses[Math.floor(random() * losses.length)] ?? 'none'
    cutsOf[loss]++
    const boot = number % bootEvery === bootEvery - 1
    const image = layImage(run.home, disk.cut(loss, random))
    const found = boot ? await bootImage(image, promised, run.apps) : checkImage(image, promised)
    rmSync(image.home, { recursive: true })
    faults.push(...found.map((fault) => `${loss}, cut at call ${moment}: ${fault}`))
    if (boot) boots++
    if (faults.length > 100) break
  }
  return { calls: operations.length, boots, faults, cutsOf }
}

const answerIdOf = (data: Buffer) => /\r\nx-request-id: (\w+)/i.exec(data.toString('latin1'))?.[1]

function keep(promised: Promised, { kind, id, at }: Acknowledged) {
  const known = promised.get(id) ?? { attempts: 0, verifiedAt: undefined }
  promised.set(id, known)
  if (kind !== 'sent') known.attempts++
  known.verifiedAt ??= at
}
