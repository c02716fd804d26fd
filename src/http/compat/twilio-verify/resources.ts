import { fromSid, idToHex, toSid } from '../../../shared/sids.ts'

/** A resource of the façade, by its path. `item` is the sid of a verification or a phone, decoded. */
export type Resource =
  | { kind: 'services' }
  | { kind: 'service' | 'verifications' | 'checks'; service: string }
  | { kind: 'verification'; service: string; item: string }

/** Finds the resource of a path, without its query. @returns undefined if there is none */
export function findResource(path: string): Resource | undefined {
  const [version, services, service, collection, item, ...rest] = path.split('/').slice(1)
  if (version !== 'v2' || services !== 'Services' || rest.length > 0) return undefined
  if (service === undefined) return { kind: 'services' }
  if (collection === undefined) return { kind: 'service', service }
  if (collection === 'VerificationCheck' && item === undefined) return { kind: 'checks', service }
  if (collection !== 'Verifications') return undefined
  if (item === undefined) return { kind: 'verifications', service }
  const decoded = decode(item)
  return decoded === undefined ? undefined : { kind: 'verification', service, item: decoded }
}

/** Names a resource as Twilio does in errors: sids as otpd writes them, and no phone. */
export function resourceName(path: string): string | undefined {
  const resource = findResource(path)
  if (!resource || resource.kind === 'services') return undefined
  const applicationId = fromSid(['VA'], 'app', resource.service)
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

/** Reads the sid of a verification. @returns the id of the OTP request, or undefined if it is no sid */
export const readVerificationSid = (sid: string): string | undefined => fromSid(['VE'], 'otp', sid)

/** Reads the user name of a call: an account's or a key's sid. @returns the id of the application */
export const readAccountSid = (sid: string): string | undefined => fromSid(['AC', 'SK'], 'app', sid)

/** Tells whether a sid is that of the application's service. */
export const isServiceOf = (applicationId: string, sid: string): boolean =>
  fromSid(['VA'], 'app', sid) === applicationId
