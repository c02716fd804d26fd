import { testKeys } from './keys.ts'
import { deriveCode } from '../../src/domain/model/code.ts'
import { unlimitedPlans } from './plans.ts'
import {
  createTestService,
  type TestResponse,
  type TestCaller,
  type TestOptions,
  type TestService,
} from './service.ts'

type SentOtpData = {
  requestId: string
  phone: string
  status: string
  expiresAt: string
  code?: string
}

export type OtpRequestData = {
  id: string
  requestId: string
  appId: string
  phone: string
  country: string | null
  status: string
  failureReason: string | null
  channel: string
  attempts: number
  resends: number
  createdAt: string
  expiresAt: string
  verifiedAt: string | null
  updatedAt: string
}

export type LogData = {
  id: string
  type: string
  appId: string | null
  requestId: string | null
  phone: string | null
  status: string | null
  detail: string | null
  at: string
}

type Headers = Record<string, string | undefined>

/** A possible number outside the ranges reserved for fiction. */
export const phone = '+14155552671'

export type OtpClient = ReturnType<typeof createOtpClient>

/** Creates the calls that tests of codes share. */
export function createOtpClient(service: TestService) {
  const keys = testKeys
  const post = <T>(path: string, as: TestCaller, body: unknown, headers?: Headers) =>
    service.request<T>('POST', `/v1/otp/${path}`, { as, body, ...(headers && { headers }) })

  /** Returns the code that the phone would show. */
  async function getCode(requestId: string): Promise<string> {
    const request = await service.store.read.otpRequests.find(requestId)
    if (!request) throw new Error('no such request')
    return deriveCode(keys, request)
  }

  const client = {
    getCode,

    /** Returns one of the 999,999 wrong codes. */
    getWrongCode: async (requestId: string, distance = 1): Promise<string> =>
      String((Number(await getCode(requestId)) + distance) % 1_000_000).padStart(6, '0'),

    send: (as: TestCaller, body: object = {}, headers?: Headers) =>
      post<SentOtpData>('send', as, { phone, ...body }, headers),

    resend: (as: TestCaller, requestId: string, headers?: Headers) =>
      post<SentOtpData>('resend', as, { requestId }, headers),

    verify: (as: TestCaller, requestId: string, code: string) =>
      post<{ requestId: string; status: string; phone: string; verifiedAt: string }>('verify', as, {
        requestId,
        code,
      }),

    verifyByPhone: (as: TestCaller, phone: string, code: string) =>
      post<{ requestId: string }>('verify', as, { phone, code }),

    cancel: (as: TestCaller, requestId: string) =>
      post<{ requestId: string; status: string; phone: string }>('cancel', as, { requestId }),

    get: (as: TestCaller, requestId: string) =>
      service.request<OtpRequestData>('GET', `/v1/otp/${requestId}`, { as }),

    /** Sends a code. @throws Error if the send fails */
    async sendOrThrow(as: TestCaller, body: object = {}): Promise<SentOtpData> {
      const response = await client.send(as, body)
      if (response.status !== 201) throw new Error(`${response.status} ${response.text}`)
      return response.data
    },

    verifyRightCode: async (as: TestCaller, requestId: string) =>
      client.verify(as, requestId, await getCode(requestId)),

    verifyWrongCode: async (as: TestCaller, requestId: string) =>
      client.verify(as, requestId, await client.getWrongCode(requestId)),

    /** Lists the newest 200 log entries about a request, oldest first. */
    async listLogEntries(developer: TestCaller, requestId: string): Promise<LogData[]> {
      const response = await service.request<LogData[]>('GET', '/v1/logs?limit=200', { as: developer })
      return response.data.filter((entry) => entry.requestId === requestId)
    },
  }
  return client
}

/** Removes the trace id from an error body, so that two bodies can be compared. */
export const withoutTraceId = (text: string) => text.replace(/"traceId":"req_\w{26}"/, '')

/** Counts responses by status, error code and, if present, reason. */
export function countByOutcome(responses: Array<TestResponse<unknown>>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, error } of responses) {
    const kind = [status, error?.code, error?.reason].filter((part) => part !== undefined).join(' ')
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

/** Turns off the guard, which would log the adjacent phone numbers of tests as SMS pumping. */
export const guardOffEnv = { OTPD_GUARD_MODE: 'off' }

/** Creates a service without guard and limits for the tests of one file, with a developer and a live application. */
export async function createOtpTestService(options: TestOptions = {}) {
  const service = await createTestService({ plans: unlimitedPlans, env: guardOffEnv, ...options })
  const owner = await service.createDeveloper()
  return {
    service,
    otp: createOtpClient(service),
    owner,
    application: await service.createApplication(owner),
  }
}
