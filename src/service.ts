/** The service, as the command line loads it: a bundle of its own in the executable, as most commands need none of it. */
export * from './config.ts'
export * from './delivery/template-lint.ts'
export * from './host.ts'
export * from './server.ts'
