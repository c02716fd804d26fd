import { fromSid, idToHex, toSid } from '../../../shared/sids.ts'

/** A resource of the façade, by its path. `item` is a sid or a phone, decoded. */
export type Resource =
  | { kind: 'services' | 'attempts' | 'summary' | 'safeNumbers' }
  | { kind: 'service' | 'verifications' | 'checks'; service: string }
  | { kind: 'verification'; service: string; item: string }
  | { kind: 'attempt' | 'safeNumber'; item: string }

/** Finds the resource of a path, without its query. @returns undefined if there is none */
export function findResource(path: string): Resource | undefined {
  const [version, root, ...segments] = path.split('/').slice(1)
  if (version !== 'v2') return undefined
  if (root === 'Attempts') return findAttempts(segments)
  if (root === 'SafeList') return findSafeNumbers(segments)
  return root === 'Services' ? findService(segments) : undefined
}

function findAttempts([item, ...rest]: string[]): Resource | undefined {
  if (rest.length > 0) return undefined
  if (item === undefined) return { kind: 'attempts' }
  return item === 'Summary' ? { kind: 'summary' } : { kind: 'attempt', item }
}

function findSafeNumbers([numbers, item, ...rest]: string[]): Resource | undefined {
  if (numbers !== 'Numbers' || rest.length > 0) return undefined
  if (item === undefined) return { kind: 'safeNumbers' }
  const decoded = decode(item)
  return decoded === undefined ? undefined : { kind: 'safeNumber', item: decoded }
}

function findService([service, collection, item, ...rest]: string[]): Resource | undefined {
  if (rest.length > 0) return undefined
  if (service === undefined) return { kind: 'services' }
  if (collection === undefined) return { kind: 'service', service }
  if (collection === 'VerificationCheck' && item === undefined) return { kind: 'checks', service }
  if (collection !== 'Verifications') return undefined
  if (item === undefined) return { kind: 'verifications', service }
  const decoded = decode(item)
  return decoded === undefined ? undefined : { kind: 'verification', service, item: decoded }
}

/** Names a resource as Twilio does in errors: sids as otpd writes them, and no phone. */
export function resourceName(resource: Resource): string | undefined {
  if (resource.kind === 'safeNumber') return '/SafeList/Numbers'
  if (resource.kind === 'attempt') {
    const attempt = readAttemptSid(resource.item)
    return attempt && `/Attempts/${attemptSid(attempt.requestId, attempt.message)}`
  }
  if (!('service' in resource)) return undefined
  const applicationId = readServiceSid(resource.service)
  if (applicationId === undefined) return undefined
  const service = `/Services/${serviceSid(applicationId)}`
  if (resource.kind === 'service') return service
  if (resource.kind === 'checks') return `${service}/VerificationCheck`
  const verifications = `${service}/Verifications`
  if (resource.kind !== 'verification') return verifications
  const requestId = readVerificationSid(resource.item)
  return requestId === undefined ? verifications : `${verifications}/${verificationSid(requestId)}`
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

export const accountSid = (applicationId: string) => toSid('AC', applicationId)
export const serviceSid = (applicationId: string) => toSid('VA', applicationId)
export const verificationSid = (requestId: string) => toSid('VE', requestId)

/** Sid of one message: the request's, with the number of the message instead of the version digit, which is always 7. */
export function attemptSid(requestId: string, message: number): string {
  const hex = idToHex(requestId)
  return `VL${hex.slice(0, 12)}${message.toString(16)}${hex.slice(13)}`
}

/** Reads the sid of a message. @returns the id of its OTP request and its number, or undefined if it is no sid */
export function readAttemptSid(sid: string): { requestId: string; message: number } | undefined {
  const requestId = fromSid(['VL'], 'otp', `${sid.slice(0, 14)}7${sid.slice(15)}`)
  const message = Number.parseInt(sid[14] ?? '', 16)
  return requestId === undefined || Number.isNaN(message) ? undefined : { requestId, message }
}

/** Sid of an entry of the safe list: that of its rule, or of the application if a prefix of the configuration makes it. */
export const safeNumberSid = (id: string) => toSid('GN', id)

/** Reads the sid of a verification. @returns the id of the OTP request, or undefined if it is no sid */
export const readVerificationSid = (sid: string): string | undefined => fromSid(['VE'], 'otp', sid)

/** Reads the user name of a call: an account's or a key's sid. @returns the id of the application */
export const readAccountSid = (sid: string): string | undefined => fromSid(['AC', 'SK'], 'app', sid)

/** Reads the sid of a service. @returns the id of the application, or undefined if it is no sid */
export const readServiceSid = (sid: string): string | undefined => fromSid(['VA'], 'app', sid)

/** Tells whether a sid is that of the application's service. */
export const isServiceOf = (applicationId: string, sid: string): boolean =>
  readServiceSid(sid) === applicationId
