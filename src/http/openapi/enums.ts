import { auditActions } from '../../shared/audit-actions.ts'
import { ruleEffects, ruleTargets } from '../../domain/model/list-rule.ts'
import { relayOutcomes } from '../../domain/model/relayed-message.ts'
import { choiceReasons, learningStrategies } from '../../domain/model/route-choice.ts'
import { channels, otpStatuses } from '../../domain/model/request.ts'
import { webhookDeliveryStatuses, webhookErrors } from '../../domain/model/webhook-delivery.ts'
import { apiTokenScopes } from '../../shared/api-token-scopes.ts'
import { eventKinds, subscriptions } from '../../shared/event-kinds.ts'
import { errorCodes } from '../errors.ts'
import { environments, failureReasons, requestChannels } from '../../shared/otp-values.ts'

/** Lists of words that the document names: a schema with exactly these words refers to the component. */
export const enumComponents: ReadonlyArray<{ name: string; values: readonly string[]; description: string }> =
  [
    {
      name: 'ApiTokenScope',
      values: apiTokenScopes,
      description:
        'What an API token may do. `otp:read` reads OTP requests, users, logs and analytics; `support` also unlocks and erases phone numbers; `read` reads everything but secrets and the inbox; `write` does what a login can do, except managing access to the account. `support`, `read` and `write` include `otp:read`; `write` includes all.',
    },
    {
      name: 'ApplicationStatus',
      values: ['active', 'disabled'],
      description: 'A disabled application is refused with 403 FORBIDDEN.',
    },
    { name: 'AuditAction', values: auditActions, description: 'What was done.' },
    {
      name: 'Channel',
      values: channels,
      description: 'How a message reaches the phone.',
    },
    {
      name: 'CircuitState',
      values: ['closed', 'open'],
      description: '`open` while a provider fails.',
    },
    { name: 'ChoiceReason', values: choiceReasons, description: 'Why a provider was chosen.' },
    {
      name: 'LearningStrategy',
      values: learningStrategies,
      description: 'A strategy that learns from outcomes.',
    },
    {
      name: 'RequestChannel',
      values: requestChannels,
      description:
        'How the newest message of a request reaches the phone; `silent` if a proof took its place.',
    },
    {
      name: 'CredentialType',
      values: ['secret', 'api', 'webhook_secret'],
      description: 'Client secret, API key or webhook secret.',
    },
    { name: 'EndpointStatus', values: ['enabled', 'disabled'], description: 'Whether events are sent.' },
    {
      name: 'CodeOutcome',
      values: relayOutcomes,
      description:
        '`verified`: your user entered the code. `failed`: your user did not, or entered a wrong one.',
    },
    {
      name: 'Environment',
      values: environments,
      description: 'Messages of `test` applications go to the inbox and to no phone.',
    },
    {
      name: 'ErrorCode',
      values: errorCodes,
      description:
        'Stable machine-readable error code. Later versions may add codes: decide by the HTTP status.',
    },
    { name: 'EventKind', values: eventKinds, description: 'Kind of an event.' },
    {
      name: 'EventSubscription',
      values: subscriptions,
      description:
        'Kind of events to subscribe to; `*` is all of them, including kinds that later versions add.',
    },
    {
      name: 'FailureReason',
      values: failureReasons,
      description:
        'Why a request failed: five wrong codes, no provider could deliver the message, or the fraud guard blocked it.',
    },
    {
      name: 'GuardListRuleEffect',
      values: ruleEffects,
      description: 'Whether messages pass or are refused.',
    },
    {
      name: 'GuardListRuleTarget',
      values: ruleTargets,
      description: 'What the value of a rule names.',
    },
    {
      name: 'OtpStatus',
      values: otpStatuses,
      description: 'State of an OTP request. All but `pending` are final.',
    },
    {
      name: 'WebhookDeliveryStatus',
      values: webhookDeliveryStatuses,
      description: 'State of a delivery. `failed` is sent again only by a redelivery or a recovery.',
    },
    {
      name: 'WebhookError',
      values: webhookErrors,
      description:
        'Why an attempt failed: the address or port is not allowed, the name was not resolved, no connection, invalid TLS certificate, no response in time, connection closed early, redirect, a status other than 2xx, or the stored event cannot be decrypted.',
    },
  ]
