# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# A private apt, for packages that are fetched but not installed. It neither reads nor
# writes the package state of this machine, but uses the same archives. For vm/kernels and
# others, after vm/lib.sh.

RELEASE=bookworm
APT=$BUILD/apt

# Debian's suites that offer this kernel version, or vm/qemu's package.
suites_of() {
	case $1 in
		6.1) echo "$RELEASE $RELEASE-updates $RELEASE-security" ;;
		6.12 | 6.12-arm64* | qemu) echo "$RELEASE-backports" ;;
		7.2 | 7.3) echo "trixie-backports" ;;
		*) die "unknown kernel '$1' (have: ${KERNELS[*]})" ;;
	esac
}

# The Debian that this kernel version is packaged for: the build tools in its headers are
# linked against the C library of that release. User-Mode Linux is built on this machine.
debian_of() {
	case $1 in
		*-uml) echo "$RELEASE" ;;
		7.*) echo trixie ;;
		*) echo "$RELEASE" ;;
	esac
}

# The archives that this machine is configured to use for the wanted suite. Asks apt itself,
# which knows one-line and deb822 sources, mirror lists and overrides.
configured_archives() {
	local suite=$1
	apt-get update --print-uris 2> /dev/null |
		sed -n "s|^'\(.*\)/dists/$suite/[^ ]*' .*|\1|p" | sort -u
}

# Writes the source list for the wanted suites. Several archives may have a suite of this
# name, since third parties use Debian's names; only Debian's is signed by Debian's keyring.
write_sources() {
	local list=$1 archive_of=$2 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	local options='' suite uri
	[[ ! -e $keyring ]] || options="[signed-by=$keyring] "
	: > "$list"
	for suite in $3; do
		uri=$archive_of
		if [[ $suite == *-security ]]; then
			uri=$(configured_archives "$suite" | head -n 1)
			[[ -n $uri ]] || continue
		fi
		echo "deb $options$uri $suite main" >> "$list"
	done
}

# apt without the state of this machine: no installed packages, no lists.
private_apt() {
	local tool=$1 state=$2
	shift 2
	"$tool" -c "$state/apt.conf" \
		-o "Dir::Etc::sourcelist=$state/sources.list" \
		-o "Dir::Etc::sourceparts=/dev/null" \
		-o "Dir::Etc::preferences=/dev/null" \
		-o "Dir::Etc::preferencesparts=/dev/null" \
		-o "Dir::State=$state/state" \
		-o "Dir::State::lists=$state/lists" \
		-o "Dir::State::status=$state/status" \
		-o "Dir::Cache=$state/cache" \
		-o "APT::Architecture=amd64" \
		-o "APT::Sandbox::User=root" \
		-o "Acquire::Retries=3" \
		-o "Acquire::Languages=none" "$@"
}

# Sets up a private apt with the suites of the kernel or of `qemu`. Tries all archives that this machine
# uses for Debian's release until one works.
prepare_apt() {
	local state=$1 version=$2 suites archive archives
	suites=$(suites_of "$version")
	mkdir -p "$state"/{state,lists/partial,cache/archives/partial}
	: > "$state/status"
	# Hooks of this machine (as in container images) concern its own state.
	printf '#clear %s;\n' APT::Update::Pre-Invoke APT::Update::Post-Invoke \
		APT::Update::Post-Invoke-Success Acquire::IndexTargets::deb::DEP-11 > "$state/apt.conf"
	[[ $version != *-arm64* ]] || echo 'APT::Architectures { "amd64"; "arm64"; };' >> "$state/apt.conf"

	archives=$(configured_archives "$RELEASE")
	[[ -n $archives ]] || die "this machine's apt has no source for Debian $RELEASE" \
		"(looked with 'apt-get update --print-uris'); add one to /etc/apt/sources.list.d"
	for archive in $archives; do
		write_sources "$state/sources.list" "$archive" "$suites"
		if quietly private_apt apt-get "$state" update -o APT::Update::Error-Mode=any; then
			return
		fi
	done
	die "cannot read the package lists of: $suites;" \
		"check the network and this machine's apt sources"
}
