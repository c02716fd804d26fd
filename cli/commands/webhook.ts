import type { CliCommand } from './command.ts'
import { addDeliveryCommands } from './webhook-deliveries.ts'
import { addEndpointCommands } from './webhook-endpoints.ts'
import { addListenCommand } from './webhook-listen.ts'
import { addVerifyCommand } from './webhook-verify.ts'

/** Registers the webhook commands. */
export function addWebhookCommands(program: CliCommand) {
  const webhook = program.command('webhook').alias('webhooks').description('webhook endpoints and deliveries')
  addEndpointCommands(webhook)
  addDeliveryCommands(webhook)
  addListenCommand(webhook)
  addVerifyCommand(webhook)
}
