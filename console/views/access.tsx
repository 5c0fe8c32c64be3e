/** Who may do what: users, tenants, roles with their rules, tokens, and why somebody may do something. For admins, and whom rules allow it. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type Consumer, newToken, type PlainRecord } from '../../client/browser.ts'
import { ControlForm } from '../parts/control-form.tsx'
import type { Control, Offer, Texts } from '../parts/control-parameters.ts'
import { Explain } from '../parts/explain.tsx'
import { fieldText, type Listing, useListing, userOf } from '../parts/listing.ts'
import { ListingTable } from '../parts/listing-table.tsx'
import { Name } from '../parts/name.tsx'
import { roleOffer } from '../parts/roles.ts'
import { State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatBytes, formatCount, formatUtc } from '../units.ts'

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

/** The pages of the view, with their titles. */
export const ACCESS_PAGES: ReadonlyMap<string, string> = new Map(TABS.map(({ tab, title }) => [tab, title]))

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
  readonly offers?: Readonly<Record<string, Offer>>
  /** The lists that name roles, where the control takes one. */
  readonly roles?: Readonly<Record<'users' | 'rules', Listing>>
}

/** A form to fold out; nothing if the control may not be run. */
function Form({ consumer, listing, name, title, label, question, offers = {}, roles }: FormProps) {
  const control = listing.controls.get(name)
  if (control === undefined) return null
  return (
    <Fold title={title}>
      <ControlForm
        consumer={consumer}
        control={control}
        label={label}
        offers={roles === undefined ? offers : { ...offers, role: roleOffer(control, roles.users, roles.rules) }}
        {...(question && { question })}
        onEnd={listing.reload}
      />
    </Fold>
  )
}

function Fold({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <details class="card">
      <summary>{title}</summary>
      {children}
    </details>
  )
}

/** The user that the fields of a form name. */
function named({ tenant = '', user = '' }: Texts): string {
  return userOf({ tenant: tenant === '' ? 'default' : tenant, user })
}

function offersOf(users: readonly PlainRecord[] = []): Readonly<Record<'user' | 'tenant', Offer>> {
  const distinct = (field: string): Offer => ({
    texts: [...new Set(users.map((one) => fieldText(one, field)))].sort(),
    others: 'typed',
  })
  return { user: distinct('user'), tenant: distinct('tenant') }
}

function Users({ consumer }: TabProps) {
  const listing = useListing(consumer, 'user')
  const rules = useListing(consumer, 'role')
  const { user, tenant } = offersOf(listing.records)
  const form = { consumer, listing }
  const roles = { users: listing, rules }
  return (
    <>
      <ListingTable
        {...form}
        what="users"
        keyOf={userOf}
        textOf={(one) => `${userOf(one)} ${fieldText(one, 'role')}`}
        columns={[
          { title: 'User', cellLook: 'code', cell: (one) => <Name text={userOf(one)} /> },
          { title: 'Role', cell: (one) => <Name text={fieldText(one, 'role')} max={32} /> },
        ]}
        action={{
          label: 'Remove',
          control: 'user.remove',
          of: (one) => ({
            object: userOf(one),
            args: { user: fieldText(one, 'user'), tenant: fieldText(one, 'tenant') },
            question: `Remove ${userOf(one)}? Its channels with what waits in them, its metrics and tokens are gone, and its sessions end at once.`,
          }),
        }}
      />
      <Form
        {...form}
        name="user.add"
        title="Add a user"
        label="Add"
        offers={{ tenant }}
        roles={roles}
        question={(texts) => `Add the user ${named(texts)} with the role ${texts['role'] || 'consumer'}?`}
      />
      <Form
        {...form}
        name="user.role"
        title="Change the role of a user"
        label="Change"
        offers={{ user, tenant }}
        roles={roles}
        question={(texts) => `Give ${named(texts)} the role ${texts['role']}? What it may do no longer ends at once.`}
      />
      <Form
        {...form}
        name="user.passwd"
        title="Set the password of a user"
        label="Set"
        offers={{ user, tenant }}
        question={(texts) => `Set the password of ${named(texts)}? The one that it has now is not valid any more.`}
      />
    </>
  )
}

function tenantOf(record: PlainRecord): string {
  return fieldText(record, 'tenant')
}

function Tenants({ consumer }: TabProps) {
  const listing = useListing(consumer, 'tenant')
  const offers = { tenant: { texts: (listing.records ?? []).map(tenantOf), others: 'typed' } } as const
  const form = { consumer, listing }
  return (
    <>
      <ListingTable
        {...form}
        what="tenants"
        keyOf={tenantOf}
        textOf={tenantOf}
        columns={[
          { title: 'Tenant', cellLook: 'code', cell: (one) => <Name text={tenantOf(one)} /> },
          {
            cell: (one) => (
              <>
                <span class="code">{formatCount(Number(one['users']))}</span> <small>users</small>
              </>
            ),
          },
          {
            title: 'Used, and its limits',
            cellLook: 'whole',
            cell: (one) => <Quota quota={one['quota'] as PlainRecord} used={one['used'] as PlainRecord} />,
          },
        ]}
        action={{
          label: 'Remove',
          control: 'tenant.remove',
          of: (one) => ({
            object: tenantOf(one),
            args: { tenant: tenantOf(one) },
            question: `Remove the tenant ${tenantOf(one)}? It goes only if it has no users.`,
          }),
        }}
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
  const users = useListing(consumer, 'user')
  const rule = (texts: Texts): string =>
    [texts['command'], texts['object'], texts['where'] && `where ${texts['where']}`].filter(Boolean).join(' ')
  const form = { consumer, listing, roles: { users, rules: listing } }
  return (
    <>
      <p class="note">
        The role admin may do everything; others read the metrics of their tenant without any rule. The most specific
        rule decides, and among equals one that denies.
      </p>
      <ListingTable
        consumer={consumer}
        listing={listing}
        what="rules"
        keyOf={(one) => String(one['rule'])}
        textOf={(one) => [fieldText(one, 'role'), fieldText(one, 'object')].join(' ')}
        columns={[
          { title: 'Role', cellLook: 'code', cell: (one) => <Name text={fieldText(one, 'role')} /> },
          {
            title: 'Rule',
            cellLook: 'whole',
            cell: (one) => (
              <>
                <State
                  look={fieldText(one, 'effect') === 'allow' ? 'good' : 'attention'}
                  text={fieldText(one, 'effect')}
                  detail={`rule ${String(one['rule'])}`}
                />{' '}
                <bdi class="code">{rule(one as Texts)}</bdi>
              </>
            ),
          },
        ]}
        action={{
          label: 'Forget',
          control: 'role.forget',
          of: (one) => ({
            object: `rule ${String(one['rule'])}`,
            args: { rule: Number(one['rule']) },
            question: `Forget the rule "${fieldText(one, 'effect')} ${rule(one as Texts)}" of the role ${fieldText(one, 'role')}? What is allowed by nothing else ends at once.`,
          }),
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

function Tokens({ consumer }: TabProps) {
  const listing = useListing(consumer, 'token')
  const users = useListing(consumer, 'user')
  const control = listing.controls.get('token.add')
  return (
    <>
      <ListingTable
        consumer={consumer}
        listing={listing}
        what="tokens"
        keyOf={(one) => String(one['token'])}
        textOf={(one) => [userOf(one), fieldText(one, 'name'), fieldText(one, 'scope')].join(' ')}
        columns={[
          { title: 'Token', cellLook: 'code', cell: (one) => String(one['token']) },
          { title: 'User', cellLook: 'code', cell: (one) => <Name text={userOf(one)} /> },
          {
            title: 'For',
            cellLook: 'whole',
            cell: (one) => (
              <>
                <Name text={fieldText(one, 'name')} />
                <small class="more">
                  <bdi>{fieldText(one, 'scope') || 'everything that its user may do'}</bdi>
                </small>
              </>
            ),
          },
          {
            title: 'Expires',
            cell: (one) => (Number(one['expires']) === 0 ? 'never' : <Day time={Number(one['expires'])} />),
          },
        ]}
        action={{
          label: 'Revoke',
          control: 'token.revoke',
          of: (one) => ({
            object: `token ${String(one['token'])}`,
            args: { token: Number(one['token']) },
            question: `Revoke token ${String(one['token'])} of ${userOf(one)}? Sessions that were opened with it end within a second.`,
          }),
        }}
      />
      {control === undefined ? null : (
        <NewToken consumer={consumer} control={control} offers={offersOf(users.records)} onMade={listing.reload} />
      )}
    </>
  )
}

function Day({ time }: { readonly time: number }) {
  return <time title={formatUtc(time)}>{new Date(time / 1000).toLocaleDateString('sv')}</time>
}

interface NewTokenProps {
  readonly consumer: Consumer
  readonly control: Control
  readonly offers: Readonly<Record<string, Offer>>
  readonly onMade: () => void
}

/** The token is made in this page, and the server gets its hash only: it is shown once, and nobody can show it again. */
function NewToken({ consumer, control, offers, onMade }: NewTokenProps) {
  const [made, setMade] = useState('')
  const [isValid, setValid] = useState(false)
  const [copied, setCopied] = useState('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(made)
      setCopied('copied')
    } catch {
      setCopied('The browser does not let the page copy it: select it, and copy it by hand.')
    }
  }
  return (
    <Fold title="Make a token">
      {isValid ? (
        <div class="padded token" role="status">
          <p>This is the token. It is shown only now: nobody can show it again.</p>
          <p>
            <code>{made}</code>
          </p>
          <div class="buttons">
            <button type="button" class="first" onClick={() => void copy()}>
              Copy
            </button>
            <button
              type="button"
              onClick={() => {
                setMade('')
                setCopied('')
                setValid(false)
              }}
            >
              I have stored it
            </button>
            <span class="note" role="status">
              {copied}
            </span>
          </div>
        </div>
      ) : (
        <ControlForm
          consumer={consumer}
          control={control}
          given={{ hash: '' }}
          label="Make"
          offers={offers}
          question={(texts) => `Make a token for ${named(texts)}? Whoever has it can log in as that user.`}
          made={async () => {
            const { token, hash } = await newToken()
            setMade(token)
            return { hash }
          }}
          onEnd={({ outcome }) => {
            setValid(outcome === 'ok')
            onMade()
          }}
        />
      )}
    </Fold>
  )
}
