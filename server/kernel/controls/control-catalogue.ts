/**
 * The controls that an identity can see, and what it may run of them: those of the server, those that appear and disappear at run time,
 * and those of other producers.
 */
import {
  type AccessRequest,
  ADMIN_ROLE,
  type Identity,
  type RequestedObject,
  type Rule,
} from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { StatusError } from '../core/errors.ts'
import { PRODUCER } from '../metrics/reach.ts'
import {
  type Audience,
  type Control,
  type ControlContext,
  type ControlSource,
  commonParameters,
  type RemoteControl,
  type RemoteControls,
} from './control.ts'
import { argumentText, type Invocation } from './invocation.ts'

/** The rights to run controls. */
export interface ControlRights {
  mayBeAllowed(identity: Identity, request: RequestedObject, argument?: AccessRequest['argument']): boolean
  may(who: ControlContext, request: AccessRequest): boolean
  /** The rule by which a request that is allowed has to wait for approval; undefined if it need not. */
  approvalRule(who: ControlContext, request: AccessRequest): Rule | undefined
}

export class ControlCatalogue {
  readonly #own = new Map<string, Control>()
  readonly #sources: ControlSource[] = []
  readonly #remote: RemoteControls[] = []
  readonly #rights: ControlRights

  constructor(rights: ControlRights) {
    this.#rights = rights
  }

  add(own: readonly Control[], sources: readonly ControlSource[] = [], remote: readonly RemoteControls[] = []): void {
    for (const control of own) this.#own.set(control.name, control)
    this.#sources.push(...sources)
    this.#remote.push(...remote)
  }

  /** Puts other controls in the place of all whose names begin with a prefix. */
  replace(prefix: string, own: readonly Control[]): void {
    for (const name of this.#own.keys()) if (name.startsWith(prefix)) this.#own.delete(name)
    this.add(own)
  }

  /** Whom a control is for, whatever the rules say. */
  audienceOf(name: string): Audience {
    return this.#sources.find(({ prefix }) => name.startsWith(prefix)) ?? this.#own.get(name) ?? {}
  }

  /** The controls that an identity can see, and undefined for each that it cannot: there may be thousands. */
  *visible(identity: Identity): Generator<Control | undefined> {
    for (const controls of [this.#own.values(), ...this.#sources.map((source) => source.of(identity))]) {
      for (const control of controls) yield this.#isVisible(control, identity) ? control : undefined
    }
  }

  /** The controls of other producers that an identity can see. */
  *remote(producers: (path: string) => boolean, identity: Identity): Generator<RemoteControl> {
    for (const remote of this.#remote) {
      for (const one of remote.of(producers, identity)) {
        if (this.isShown(identity, one.control.name, one.producer)) yield one
      }
    }
  }

  /**
   * The control that an EXECUTE means. With the argument `producer` it is one of another producer: the name of this one is nobody's path
   * [MON 9.13].
   */
  meant(name: string, list: ArgumentList, identity: Identity): Control | undefined {
    const producer = list.find((argument) => argument.name === PRODUCER)?.value
    if (typeof producer !== 'string') return this.find(name, identity)
    if (!this.isShown(identity, name)) return undefined
    for (const remote of this.#remote) {
      const found = remote.find(name, producer, identity)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Throws StatusError for a control that is not there, as the connection is to be told. */
  refuseUnknown(name: string, context: ControlContext): never {
    // On a connection that the producer made, it is refused like a control that may not be run.
    const bare = { command: 'EXECUTE', object: name, argument: () => undefined } as const
    if (context.destination !== undefined && !this.#rights.may(context, bare)) throw mayNotRun(name)
    throw new StatusError('NO_SUCH_CONTROL', `no control ${name}: \`producer.controls\` lists the controls`)
  }

  /** Judges the rights to run a control with its arguments. Returns the rule that has it wait for approval. Throws StatusError. */
  judge({ name }: Control, { args, isDryRun }: Invocation, context: ControlContext): Rule | undefined {
    const argument = (of: string): string | undefined => argumentText(args.get(of))
    const request = { command: 'EXECUTE', object: name, argument } as const
    if (!this.#rights.may(context, request)) throw mayNotRun(name)
    return isDryRun ? undefined : this.#rights.approvalRule(context, request)
  }

  /** The rule by which a control waits with these arguments, whether or not it is there. */
  approvalRule(name: string, args: ArgumentList, context: ControlContext): Rule | undefined {
    const given = new Map(args.map((argument) => [argument.name, argument.value]))
    for (const { name } of commonParameters) given.delete(name)
    const argument = (of: string): string | undefined => argumentText(given.get(of))
    return this.#rights.approvalRule(context, { command: 'EXECUTE', object: name, argument })
  }

  /** The controls of the server itself that match a pattern and take a secret, so that no rule can have them wait for approval. */
  secretive(matches: (name: string) => boolean): string[] {
    const found = [...this.#own.values()].filter(({ parameters }) => parameters.some(({ secret }) => secret === true))
    return found.map(({ name }) => name).filter(matches)
  }

  /** Returns undefined if the control does not exist or is not shown to the identity. */
  find(name: string, identity: Identity): Control | undefined {
    let control = this.#own.get(name)
    for (const source of this.#sources) control ??= source.find(name, identity)
    return control && this.#isVisible(control, identity) ? control : undefined
  }

  /**
   * Whether the identity may run a control of this name with some arguments; only then the catalogue shows it. `producer`: the path of
   * the other one that has it.
   */
  isShown(identity: Identity, control: string, producer?: string): boolean {
    const argument = (name: string): string | undefined => (name === PRODUCER ? producer : undefined)
    return this.#rights.mayBeAllowed(identity, { command: 'EXECUTE', object: control }, argument)
  }

  #isVisible({ name, tenants, adminOnly }: Control, identity: Identity): boolean {
    if (adminOnly && identity.role !== ADMIN_ROLE) return false
    if (tenants !== undefined && !tenants.includes(identity.tenant)) return false
    return this.isShown(identity, name)
  }
}

function mayNotRun(name: string): StatusError {
  return new StatusError('PERMISSION_DENIED', `you may not run ${name} with these arguments`)
}
