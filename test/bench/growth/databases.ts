import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import { openKeyring } from '../../../src/store/data-dir/live-keyring.ts'
import { readMasterKeyCandidates } from '../../../src/store/data-dir/master-key.ts'
import { createSealing } from '../../../src/store/engine/sealing.ts'
import { call, createApplications, startAndLogIn, startOtpdServer, type Application } from '../otpd.ts'
import { writeHistory } from './history.ts'

/** Data directory with `requests` OTP requests, and the credentials to send more. */
export type FilledDatabase = {
  requests: number
  folder: string
  applications: Application[]
  endpointId: string
  /** Size of the database after it was filled, without free pages. */
  bytes: number
}

type TemplateInfo = Pick<FilledDatabase, 'applications' | 'endpointId' | 'bytes'>

const databasePath = (folder: string) => join(folder, 'data', 'otpd.db')

/** Creates the data directory to copy: the busy developer, 200 applications, and a webhook endpoint of the first. */
export async function makeTemplate(binary: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const { server, url, headers } = await startAndLogIn({
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
    const info: TemplateInfo = { applications, endpointId: data.id, bytes: 0 }
    writeFileSync(join(folder, 'model.json'), JSON.stringify(info))
  } finally {
    await server.stop()
  }
}

/** Fills a copy of the template with requests, unless a database of that size exists. */
export async function fill(
  binary: string,
  templateFolder: string,
  folder: string,
  requests: number,
): Promise<FilledDatabase> {
  if (!existsSync(folder)) {
    const partialFolder = `${folder}.part`
    rmSync(partialFolder, { recursive: true, force: true })
    cpSync(templateFolder, partialFolder, { recursive: true })
    const { applications } = readTemplateInfo(partialFolder)
    const { keys } = openKeyring(databasePath(partialFolder), () =>
      readMasterKeyCandidates(join(partialFolder, 'data'), null),
    )
    const sealing = createSealing(keys, (bytes) => crypto.getRandomValues(bytes))
    writeHistory(databasePath(partialFolder), {
      requests,
      now: Date.now(),
      owner: {
        developerId: findDeveloperId(partialFolder),
        applicationIds: applications.map(({ id }) => id),
      },
      phones: {
        seal: (id, phone) => sealing.sealPhone('otp_requests.phone', id, phone),
        open: (id, sealed) => sealing.openPhone('otp_requests.phone', id, sealed),
        pseudonym: (developerId, phone) => derivePseudonym(keys, developerId, phone),
      },
    })
    // The first start does what the history left to do, such as moving the users.
    const server = await startOtpdServer({ command: [binary], folder: partialFolder, env: {} })
    await server.stop('SIGTERM')
    // Later runs add requests to a database that is kept.
    const bytes = countBytes(partialFolder)
    writeFileSync(
      join(partialFolder, 'model.json'),
      JSON.stringify({ ...readTemplateInfo(partialFolder), bytes }),
    )
    renameSync(partialFolder, folder)
  }
  return { requests, folder, ...readTemplateInfo(folder) }
}

const readTemplateInfo = (folder: string): TemplateInfo =>
  JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'))

function queryText(folder: string, sql: string): string {
  const db = new Database(databasePath(folder), { readonly: true })
  try {
    return String(db.query<never, []>(sql).values()[0]?.[0] ?? '')
  } finally {
    db.close()
  }
}

const findDeveloperId = (folder: string) => queryText(folder, 'select developer_id from webhook_endpoints')

function countBytes(folder: string): number {
  const pages =
    '(select page_count from pragma_page_count) - (select freelist_count from pragma_freelist_count)'
  return Number(queryText(folder, `select (${pages}) * page_size from pragma_page_size`))
}
