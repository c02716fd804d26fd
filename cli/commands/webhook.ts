import type { Command } from 'commander'
import type { RunCommand } from '../context.ts'
import { addDeliveryCommands } from './webhook-deliveries.ts'
import { addEndpointCommands } from './webhook-endpoints.ts'
import { addListenCommand } from './webhook-listen.ts'
import { addVerifyCommand } from './webhook-verify.ts'

/** Registers the webhook commands. */
export function addWebhookCommands(program: Command, runCommand: RunCommand) {
  const webhook = program.command('webhook').alias('webhooks').description('webhook endpoints and deliveries')
  addEndpointCommands(webhook, runCommand)
  addDeliveryCommands(webhook, runCommand)
  addListenCommand(webhook, runCommand)
  addVerifyCommand(webhook, runCommand)
}
