import { Elysia } from 'elysia'
import type { Facade } from '../../domain/model/compat.ts'
import type { ServiceError } from '../../domain/model/errors.ts'
import { toErrorResponse } from '../errors.ts'
import { isCamaraPath, toCamaraError } from './camara/errors.ts'
import { camaraRoutes, type CamaraServices } from './camara/routes.ts'
import { isTwilioPath, toTwilioError } from './twilio-verify/errors.ts'
import { twilioVerifyRoutes, type TwilioVerifyServices } from './twilio-verify/routes.ts'

// A façade lives in a folder of its own here. It translates calls and results of another API, and calls the same domain
// operations as the routes of ours: limits, guard, events and log are theirs.

export type FacadeServices = TwilioVerifyServices &
  CamaraServices & {
    /** Façades that answer. */
    compat: readonly Facade[]
  }

/** Builds an error response. @param traceId the `X-Request-Id` of the same response @param path of the request */
export type PresentError = (
  error: ServiceError,
  traceId: string,
  path: string,
) => { status: number; headers: Record<string, string>; body: object }

type FacadeParts = {
  isPath(path: string): boolean
  presentError: PresentError
  createRoutes(services: FacadeServices): Elysia
}

const facadeParts: Record<Facade, FacadeParts> = {
  'twilio-verify': {
    isPath: isTwilioPath,
    presentError: (error, _, path) => toTwilioError(error, path),
    createRoutes: (services) => new Elysia().use(twilioVerifyRoutes(services)),
  },
  camara: {
    isPath: isCamaraPath,
    presentError: toCamaraError,
    createRoutes: (services) => new Elysia().use(camaraRoutes(services)),
  },
}

/** Creates the routes of the façades that are enabled. */
export function facadeRoutes(services: FacadeServices): Elysia {
  const routes = new Elysia()
  for (const facade of services.compat) routes.use(facadeParts[facade].createRoutes(services))
  return routes
}

/** Errors have the form of the façade on its paths, and that of the API on all others. */
export function createErrorPresenter(enabled: readonly Facade[]) {
  const parts = enabled.map((facade) => facadeParts[facade])
  const find = (path: string) => parts.find(({ isPath }) => isPath(path))
  const presentError: PresentError = (error, traceId, path) =>
    find(path)?.presentError(error, traceId, path) ?? toErrorResponse(error, traceId)
  return { presentError, isFacadePath: (path: string) => find(path) !== undefined }
}
