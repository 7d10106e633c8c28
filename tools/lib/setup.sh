# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tools/quickstart and tools/check share: find out what is missing, install it, say so.
# Sourced, from the project's folder. Does nothing, quickly, where all is there.
#
# KILN_HIDE_TOOLKIT=1 makes the scripts behave as if the machine had no CUDA toolkit.

say() {
    printf '%s\n' "$*"
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# missing_packages build|check: the Debian packages of what is not there, one a line. Asks
# for the thing itself, not for the package: it may have come another way.
missing_packages() {
    local row
    for row in cc:gcc c++:g++ meson:meson ninja:ninja-build pkg-config:pkg-config \
        python3:python3; do
        command -v "${row%%:*}" >/dev/null || say "${row#*:}"
    done
    for row in cmocka:libcmocka-dev jansson:libjansson-dev libsodium:libsodium-dev; do
        pkg-config --exists "${row%%:*}" 2>/dev/null || say "${row#*:}"
    done
    [ -e /usr/include/stdlib.h ] || say libc6-dev
    if [ -z "$toolkit" ]; then
        python3 -c 'import ensurepip' 2>/dev/null || say python3-venv
        [ -e /etc/ssl/certs/ca-certificates.crt ] || say ca-certificates
    fi
    if [ "$1" = check ]; then
        for row in clang-format-14 clang-tidy-14 strace; do
            command -v "$row" >/dev/null || say "$row"
        done
        command -v clang++ >/dev/null || say clang
        command -v llvm-symbolizer >/dev/null || say llvm
        compgen -G "$(clang++ -print-runtime-dir 2>/dev/null)/libclang_rt.msan*" >/dev/null ||
            say libclang-rt-dev
    fi
}

# install_packages PACKAGE...: with apt-get, as root or through sudo.
install_packages() {
    local as_root=()
    say "missing here: $*"
    command -v apt-get >/dev/null || die "no apt-get here; install these by hand: $*"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "not root and no sudo; install these by hand: $*"
        as_root=(sudo)
    fi
    say "installing them with apt-get (log: $log)"
    {
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get -q -y --no-install-recommends install "$@"
    } >>"$log" 2>&1 </dev/null || {
        tail -n 15 "$log" >&2
        die "apt-get could not install: $*"
    }
}

# find_toolkit: the folder of a CUDA toolkit that kiln can use, or nothing.
find_toolkit() {
    local folder version
    [ "${KILN_HIDE_TOOLKIT:-0}" != 1 ] || return 0
    for folder in "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
        [ -f "$folder/include/cuda.h" ] && [ -f "$folder/include/nvrtc.h" ] || continue
        version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$folder/include/cuda.h")
        [ "${version:-0}" -ge 12040 ] || continue
        ls "$folder"/lib64/libnvrtc.so.* "$folder"/targets/*/lib/libnvrtc.so.* >/dev/null 2>&1 ||
            [ -n "${KILN_NVRTC:-}" ] || continue
        say "$folder"
        return 0
    done
}

# pip_install DISTRIBUTION...: the 13.0 version of each, into .deps/venv, linked as .deps/cuda.
pip_install() {
    say "fetching CUDA 13.0 into .deps with pip: $*"
    {
        [ -x .deps/venv/bin/python ] || python3 -m venv .deps/venv
        .deps/venv/bin/python -m pip install -q "${@/%/==13.0.*}"
    } >>"$log" 2>&1 || {
        tail -n 15 "$log" >&2
        die "pip could not install $* 13.0; is its package index reachable?" \
            "A CUDA toolkit (CUDA_HOME) works as well"
    }
    ln -sfn "$(cd .deps && echo venv/lib/python3*/site-packages/nvidia/cu13)" .deps/cuda
}

# install_wheels: CUDA's headers and NVRTC, for a machine without a toolkit.
install_wheels() {
    if [ ! -e .deps/cuda/lib/libnvrtc.so.13 ] || [ ! -e .deps/cuda/include/cuda.h ]; then
        rm -rf .deps/venv
        pip_install nvidia-cuda-nvrtc nvidia-cuda-runtime
    fi
    cuda_include=$PWD/.deps/cuda/include
    if [ -z "${KILN_NVRTC:-}" ]; then
        export KILN_NVRTC=$PWD/.deps/cuda/lib/libnvrtc.so.13
        nvrtc_from_wheel=1
    fi
}

# install_nvcc: the compiler that a test shows emitted source to, where there is none.
install_nvcc() {
    export PATH=${toolkit:-$PWD/.deps/cuda}/bin:$PATH
    command -v nvcc >/dev/null || pip_install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm
}

# setup build|check: afterwards all that is needed is there, and $cuda_include is set.
setup() {
    local missing
    mkdir -p .deps
    log=$PWD/.deps/setup.log
    : >"$log"
    toolkit=$(find_toolkit)
    nvrtc_from_wheel=0
    mapfile -t missing < <(missing_packages "$1")
    [ "${#missing[@]}" = 0 ] || install_packages "${missing[@]}"
    if [ -n "$toolkit" ]; then
        cuda_include=$toolkit/include
    else
        install_wheels
    fi
    [ "$1" != check ] || install_nvcc
}

# build FOLDER TARGET [meson option...]: configure once, then compile what changed.
build() {
    local folder=$1 target=$2
    shift 2
    if [ ! -f "$folder/build.ninja" ]; then
        rm -rf "$folder"
        meson setup "$folder" -Db_colorout=auto -Dtoolkit_include="$cuda_include" "$@" \
            >>"$log" 2>&1 || {
            tail -n 15 "$log" >&2
            die "meson could not configure $folder (log: $log)"
        }
    fi
    ninja -C "$folder" "$target" >"$folder/ninja.log" 2>&1 || {
        grep -E -A6 'error|FAILED' "$folder/ninja.log" | cut -c1-300 | head -n 60 >&2
        die "$folder does not build (log: $folder/ninja.log)"
    }
}
