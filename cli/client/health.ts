import { responseError } from '../session/response-error.ts'
import { isOtpdHealth } from '../session/server-identity.ts'
import { isRecord } from '../../src/shared/json.ts'
import type { Connection, HttpResponse } from '../session/http.ts'

export type Health = { response: HttpResponse; notReadyReason: string | null }

/** Checks liveness, which needs no database, then readiness: the database is writable and no shutdown is under way. */
export async function checkHealth({ server, send }: Connection): Promise<Health> {
  const liveness = await send({ method: 'GET', path: '/v1/health' })
  if (!isOtpdHealth(liveness)) throw responseError(server, liveness)
  const readiness = await send({ method: 'GET', path: '/v1/health/ready' })
  return readiness.status === 200
    ? { response: liveness, notReadyReason: null }
    : { response: readiness, notReadyReason: describeNotReady(readiness) }
}

/** Describes why a server is not ready. */
export function describeNotReady({ json, status }: HttpResponse) {
  const cause = isRecord(json) && isRecord(json.data) ? json.data.cause : null
  return (typeof cause === 'string' ? causeTexts[cause] : undefined) ?? `it responded with ${status}`
}

const causeTexts: Record<string, string> = {
  draining: 'it is shutting down',
  certificate: 'it has no certificate yet',
  database: 'it cannot write to its database',
  disk: 'the disk of its database is full',
  migrations: 'its database needs a migration',
  upgrade: 'it is upgrading its database',
}
