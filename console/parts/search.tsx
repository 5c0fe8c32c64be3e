/** The field that narrows a list with every letter. */
interface SearchProps {
  /** The field's name, for those who do not see where it is. */
  readonly label: string
  readonly placeholder?: string
  readonly text: string
  readonly onText: (text: string) => void
}

export function Search({ label, placeholder = 'Part of a name', text, onText }: SearchProps) {
  return (
    <input
      type="search"
      class="search"
      placeholder={placeholder}
      aria-label={label}
      value={text}
      onInput={({ currentTarget }) => onText(currentTarget.value)}
    />
  )
}
