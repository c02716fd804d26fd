/** The service, as the command line loads it: a bundle of its own in the executable, as most commands need none of it. */
export * from '../config/config.ts'
export * from '../delivery/text/template-lint.ts'
export * from '../host/host.ts'
export * from './start.ts'
