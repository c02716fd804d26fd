import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { deriveKeys } from '../../../src/domain/model/keys.ts'
import { pseudonymOf } from '../../../src/domain/model/pseudonyms.ts'
import { readMasterKey } from '../../../src/store/files/data-dir.ts'
import { call, createApplications, openOtpd, type Application } from '../otpd.ts'
import { writeHistory } from './history.ts'

/** A data directory with that many requests in it, and who may send. */
export type Filled = {
  requests: number
  folder: string
  applications: Application[]
  endpointId: string
  /** Of the database, once it was filled. */
  bytes: number
  /** Of the busy developer, verified. */
  phone: string
}

type Model = Pick<Filled, 'applications' | 'endpointId' | 'bytes'>

const databaseIn = (folder: string) => join(folder, 'data', 'otpd.db')

/** One that holds the busy developer, his 200 applications and a webhook endpoint of the first of them. */
export async function makeModel(binary: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const { server, url, headers } = await openOtpd({
    command: [binary],
    folder,
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1' },
  })
  try {
    const applications = await createApplications(url, headers, 200)
    const { data } = await call<{ data: { id: string } }>(`${url}/v1/webhooks`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({
        appId: applications[0]?.id,
        url: 'http://127.0.0.1:9/',
        events: ['otp.verified'],
      }),
    })
    const model: Model = { applications, endpointId: data.id, bytes: 0 }
    writeFileSync(join(folder, 'model.json'), JSON.stringify(model))
  } finally {
    await server.stop()
  }
}

/** Makes the database of that size, unless it is there, from a copy of the model. */
export function fill(model: string, folder: string, requests: number): Filled {
  if (!existsSync(folder)) {
    const draft = `${folder}.part`
    rmSync(draft, { recursive: true, force: true })
    cpSync(model, draft, { recursive: true })
    const { applications } = readModel(draft)
    const keys = deriveKeys(readMasterKey(join(draft, 'data'), null))
    writeHistory(databaseIn(draft), {
      requests,
      now: Date.now(),
      owner: { developerId: ownerOf(draft), applicationIds: applications.map(({ id }) => id) },
      pseudonym: (developerId, phone) => pseudonymOf(keys, developerId, phone),
    })
    // Later runs on a database that is kept add to it.
    const { size } = statSync(databaseIn(draft))
    writeFileSync(join(draft, 'model.json'), JSON.stringify({ ...readModel(draft), bytes: size }))
    renameSync(draft, folder)
  }
  return { requests, folder, ...readModel(folder), phone: verifiedPhone(folder) }
}

const readModel = (folder: string): Model => JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'))

function ask(folder: string, question: string): string {
  const db = new Database(databaseIn(folder), { readonly: true })
  try {
    return String(db.query<never, []>(question).values()[0]?.[0] ?? '')
  } finally {
    db.close()
  }
}

const ownerOf = (folder: string) => ask(folder, 'select developer_id from webhook_endpoints')

const verifiedPhone = (folder: string) =>
  ask(
    folder,
    `select phone from identities where phone like '+%' and developer_id in
       (select number from short_ids where id in (select developer_id from webhook_endpoints))`,
  )
