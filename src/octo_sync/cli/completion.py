"""`octo-sync completion`: completion for a shell."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a shell.

    \b
    bash  octo-sync completion bash > ~/.local/share/bash-completion/completions/octo-sync
    zsh   octo-sync completion zsh > ~/.zfunc/_octo-sync     (with fpath+=~/.zfunc before compinit)
    fish  octo-sync completion fish > ~/.config/fish/completions/octo-sync.fish
    """  # noqa: D301 - click wants the character, not its spelling
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - commands start fast

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"No completion is known for {shell}.")
    click.echo(found(ctx.find_root().command, {}, "octo-sync", "_OCTO_SYNC_COMPLETE").source())
    return 0
