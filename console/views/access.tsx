/** Who may do what: users, tenants, roles with their rules, tokens, and why somebody may do something. For admins, and whom rules allow it. */
import type { ComponentChildren } from 'preact'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import { AccessList, Fold, named, offersOf, textOf, userOf } from '../parts/access-list.tsx'
import { Action } from '../parts/action.tsx'
import { ControlForm } from '../parts/control-form.tsx'
import type { Texts } from '../parts/control-parameters.ts'
import { type Listing, useListing } from '../parts/listing.ts'
import { Name } from '../parts/name.tsx'
import { State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatBytes, formatCount } from '../units.ts'
import { Tokens } from './tokens.tsx'

interface TabProps {
  readonly consumer: Consumer
}

interface Tab {
  readonly tab: string
  readonly title: string
  readonly Content: (props: TabProps) => ComponentChildren
}

const TABS: readonly [Tab, ...Tab[]] = [
  { tab: 'users', title: 'Users', Content: Users },
  { tab: 'tenants', title: 'Tenants', Content: Tenants },
  { tab: 'roles', title: 'Roles', Content: Roles },
  { tab: 'tokens', title: 'Tokens', Content: Tokens },
  { tab: 'explain', title: 'Explain', Content: Explain },
]

export function AccessView({ consumer, router }: ViewProps) {
  const { object } = router.route.value
  const shown = TABS.find(({ tab }) => tab === object) ?? TABS[0]
  const { Content } = shown
  return (
    <>
      <header>
        <h1>Access</h1>
        <nav class="choices tabs" aria-label="Access">
          {TABS.map(({ tab, title }) => (
            <a key={tab} href={linkTo('access', tab)} aria-current={tab === shown.tab ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
      </header>
      <Content key={shown.tab} consumer={consumer} />
    </>
  )
}

interface FormProps {
  readonly consumer: Consumer
  readonly listing: Listing
  readonly name: string
  readonly title: string
  readonly label: string
  readonly question?: (texts: Texts) => string
  readonly offers?: Readonly<Record<string, readonly string[]>>
}

/** A form to fold out; nothing if the control may not be run. */
function Form({ consumer, listing, name, title, label, question, offers = {} }: FormProps) {
  const control = listing.controls.get(name)
  if (control === undefined) return null
  return (
    <Fold title={title}>
      <ControlForm
        consumer={consumer}
        control={control}
        label={label}
        offers={offers}
        {...(question && { question })}
        onEnd={listing.reload}
      />
    </Fold>
  )
}

function Users({ consumer }: TabProps) {
  const listing = useListing(consumer, 'user')
  const offers = offersOf(listing.records, [])
  const may = (control: string): boolean => listing.controls.has(control)
  const form = { consumer, listing }
  return (
    <>
      <AccessList
        listing={listing}
        what="users"
        heads={['User', 'Role', '']}
        searched={(one) => `${userOf(one)} ${textOf(one, 'role')}`}
        row={(one) => (
          <tr key={userOf(one)}>
            <td class="code">
              <Name text={userOf(one)} />
            </td>
            <td>
              <Name text={textOf(one, 'role')} max={32} />
            </td>
            <td class="does">
              {may('user.remove') ? (
                <Action
                  consumer={consumer}
                  label="Remove"
                  object={userOf(one)}
                  control="user.remove"
                  args={{ user: textOf(one, 'user'), tenant: textOf(one, 'tenant') }}
                  question={`Remove ${userOf(one)}? Its channels with what waits in them, its metrics and tokens are gone, and its sessions end at once.`}
                  onDone={listing.reload}
                />
              ) : null}
            </td>
          </tr>
        )}
      />
      <Form
        {...form}
        name="user.add"
        title="Add a user"
        label="Add"
        offers={{ tenant: offers.tenant, role: offers.role }}
        question={(texts) => `Add the user ${named(texts)} with the role ${texts['role'] || 'consumer'}?`}
      />
      <Form
        {...form}
        name="user.role"
        title="Change the role of a user"
        label="Change"
        offers={offers}
        question={(texts) => `Give ${named(texts)} the role ${texts['role']}? What it may do no longer ends at once.`}
      />
      <Form
        {...form}
        name="user.passwd"
        title="Set the password of a user"
        label="Set"
        offers={offers}
        question={(texts) => `Set the password of ${named(texts)}? The one that it has now is not valid any more.`}
      />
    </>
  )
}

function Tenants({ consumer }: TabProps) {
  const listing = useListing(consumer, 'tenant')
  const offers = { tenant: (listing.records ?? []).map((one) => textOf(one, 'tenant')) }
  const form = { consumer, listing }
  return (
    <>
      <AccessList
        listing={listing}
        what="tenants"
        heads={['Tenant', '', 'Used, and its limits', '']}
        searched={(one) => textOf(one, 'tenant')}
        row={(one) => (
          <tr key={textOf(one, 'tenant')}>
            <td class="code">
              <Name text={textOf(one, 'tenant')} />
            </td>
            <td>
              <span class="code">{formatCount(Number(one['users']))}</span> <small>users</small>
            </td>
            <td class="whole">
              <Quota quota={one['quota'] as PlainRecord} used={one['used'] as PlainRecord} />
            </td>
            <td class="does">
              {listing.controls.has('tenant.remove') ? (
                <Action
                  consumer={consumer}
                  label="Remove"
                  object={textOf(one, 'tenant')}
                  control="tenant.remove"
                  args={{ tenant: textOf(one, 'tenant') }}
                  question={`Remove the tenant ${textOf(one, 'tenant')}? It goes only if it has no users.`}
                  onDone={listing.reload}
                />
              ) : null}
            </td>
          </tr>
        )}
      />
      <Form
        {...form}
        name="tenant.add"
        title="Add a tenant"
        label="Add"
        question={({ tenant }) => `Add the tenant ${tenant}?`}
      />
      <Form
        {...form}
        name="tenant.set"
        title="Change the limits of a tenant"
        label="Change"
        offers={offers}
        question={({ tenant }) => `Change the limits of ${tenant}? What it already has stays.`}
      />
    </>
  )
}

function Quota({ quota, used }: { readonly quota: PlainRecord; readonly used: PlainRecord }) {
  return (
    <ul class="quota">
      {Object.entries(quota).map(([name, limit]) => {
        const format = name.includes('bytes') ? formatBytes : formatCount
        return (
          <li key={name}>
            <span class="note">{name.replaceAll('_', ' ')}</span>{' '}
            <span class="code">
              {format(Number(used[name]))} / {Number(limit) === 0 ? 'no limit' : format(Number(limit))}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

function Roles({ consumer }: TabProps) {
  const listing = useListing(consumer, 'role')
  const offers = { role: offersOf([], listing.records).role.filter((role) => !['admin', 'consumer'].includes(role)) }
  const rule = (texts: Texts): string =>
    [texts['command'], texts['object'], texts['where'] && `where ${texts['where']}`].filter(Boolean).join(' ')
  const form = { consumer, listing, offers }
  return (
    <>
      <p class="note">
        The role admin may do everything; others read the metrics of their tenant without any rule. The most specific
        rule decides, and among equals one that denies.
      </p>
      <AccessList
        listing={listing}
        what="rules"
        heads={['Role', 'Rule', '']}
        searched={(one) => [textOf(one, 'role'), textOf(one, 'object')].join(' ')}
        row={(one) => {
          const sentence = `${textOf(one, 'effect')} ${rule(one as Texts)}`
          return (
            <tr key={String(one['rule'])}>
              <td class="code">
                <Name text={textOf(one, 'role')} />
              </td>
              <td class="whole">
                <State
                  look={textOf(one, 'effect') === 'allow' ? 'good' : 'attention'}
                  text={textOf(one, 'effect')}
                  detail={`rule ${String(one['rule'])}`}
                />{' '}
                <bdi class="code">{rule(one as Texts)}</bdi>
              </td>
              <td class="does">
                {listing.controls.has('role.forget') ? (
                  <Action
                    consumer={consumer}
                    label="Forget"
                    object={`rule ${String(one['rule'])}`}
                    control="role.forget"
                    args={{ rule: Number(one['rule']) }}
                    question={`Forget the rule "${sentence}" of the role ${textOf(one, 'role')}? What is allowed by nothing else ends at once.`}
                    onDone={listing.reload}
                  />
                ) : null}
              </td>
            </tr>
          )
        }}
      />
      <Form
        {...form}
        name="role.allow"
        title="Allow something"
        label="Allow"
        question={(texts) => `Allow the role ${texts['role']}: ${rule(texts)}?`}
      />
      <Form
        {...form}
        name="role.deny"
        title="Deny something"
        label="Deny"
        question={(texts) => `Deny the role ${texts['role']}: ${rule(texts)}? What it denies ends at once.`}
      />
      <Form
        {...form}
        name="role.remove"
        title="Remove a role"
        label="Remove"
        question={(texts) => `Remove all rules of the role ${texts['role']}? It goes only if no user has it.`}
      />
    </>
  )
}

function Explain({ consumer }: TabProps) {
  const listing = useListing(consumer, 'role', { isListed: false })
  const users = useListing(consumer, 'user')
  const control = listing.controls.get('role.explain')
  if (listing.reason !== '' || (listing.isKnown && control === undefined)) {
    return <p class="empty">Your role may not ask what others may do. {listing.reason}</p>
  }
  if (control === undefined) return null
  return (
    <section class="card" aria-label="Explain">
      <ControlForm
        consumer={consumer}
        control={control}
        label="Explain"
        offers={{ user: (users.records ?? []).map(userOf) }}
        result={({ value }) => {
          const { allowed, because } = (value ?? {}) as PlainRecord
          return (
            <p class="padded verdict">
              <State
                look={allowed === true ? 'good' : 'attention'}
                text={allowed === true ? 'Allowed' : 'Not allowed'}
                detail={String(because ?? '')}
              />
            </p>
          )
        }}
      />
    </section>
  )
}
