/** The controls that an identity can see: those of the server, and those that appear and disappear at run time. */
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import type { Audience, Control, ControlSource } from './control.ts'

/** Whether an identity may run a control with some arguments; only then the catalogue shows it. */
export type IsShown = (identity: Identity, control: string) => boolean

export class ControlCatalogue {
  readonly #own = new Map<string, Control>()
  readonly #sources: ControlSource[] = []
  readonly #isShown: IsShown

  constructor(isShown: IsShown) {
    this.#isShown = isShown
  }

  add(own: readonly Control[], sources: readonly ControlSource[]): void {
    for (const control of own) this.#own.set(control.name, control)
    this.#sources.push(...sources)
  }

  /** Puts other controls in the place of all whose names begin with a prefix. */
  replace(prefix: string, own: readonly Control[]): void {
    for (const name of this.#own.keys()) if (name.startsWith(prefix)) this.#own.delete(name)
    this.add(own, [])
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

  /** Returns undefined if the control does not exist or is not shown to the identity. */
  find(name: string, identity: Identity): Control | undefined {
    let control = this.#own.get(name)
    for (const source of this.#sources) control ??= source.find(name, identity)
    return control && this.#isVisible(control, identity) ? control : undefined
  }

  #isVisible({ name, tenants, adminOnly }: Control, identity: Identity): boolean {
    if (adminOnly && identity.role !== ADMIN_ROLE) return false
    if (tenants !== undefined && !tenants.includes(identity.tenant)) return false
    return this.#isShown(identity, name)
  }
}
