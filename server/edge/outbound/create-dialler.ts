/** Connects the dialler to the rest of the server. */
import type { AuditLog } from '../../kernel/accounts/audit/log.ts'
import type { Rights } from '../../kernel/accounts/rights.ts'
import type { Registry } from '../../kernel/channels/registry.ts'
import type { SessionContext } from '../../kernel/sessions/context.ts'
import type { DialSection } from '../config.ts'
import { AllowList } from './allow-list.ts'
import { Dialler } from './dialler.ts'
import { openConnection } from './open-connection.ts'
import { type Resolver, systemResolver } from './resolve.ts'

export interface CreateDiallerOptions
  extends Pick<SessionContext, 'clock' | 'log' | 'journal' | 'accounts' | 'quotas'> {
  readonly audit: AuditLog
  readonly config: { readonly dial: DialSection }
  readonly registry: Registry
  readonly rights: Rights
  readonly serverSecret: Uint8Array
  /** undefined for the resolver of the system. */
  readonly resolve?: Resolver | undefined
}

export function createDialler(options: CreateDiallerOptions): Dialler {
  const { config, clock, log, audit, journal, accounts, quotas, registry, rights, serverSecret } = options
  const { ca } = config.dial
  return new Dialler({
    clock,
    log,
    audit,
    stored: () => journal.whenStored(),
    allow: new AllowList(config.dial.allow),
    mayDial: (identity, object) => {
      return rights.judge(identity, { command: 'DEF_CHANNEL', object, argument: () => undefined }).allowed
    },
    account: (id) => accounts.byId(id),
    rate: (tenant) => quotas.of(tenant).dials,
    resolve: options.resolve ?? systemResolver,
    ca,
    connect: (destination, address, signal) => openConnection(destination, address, { clock, ca }, signal),
    attach: (channel, connection) => registry.attach(channel, connection),
    detach: (channel, connection) => registry.detach(channel, connection),
    serverSecret,
    random: Math.random,
  })
}
